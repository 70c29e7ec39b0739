#include "product.h"

#include <immintrin.h>

#include <cstring>
#include <limits>

// Nothing of the standard library is included behind this line: no function that other files share may be compiled
// for instructions that might not be there.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512vnni")
#endif

namespace lacuna {
namespace {

// 8 sums of 4 products each. Vectors stay 256 bits wide: the weights' layout is the same for every processor.
inline __m256i add_products(__m256i sums, __m256i values, __m256i weights) {
    return _mm256_dpbusd_epi32(sums, values, weights);
}

#include "exponential.h"
#include "product_body.h"

}  // namespace

const Kernel avx512_vnni_kernel = {"avx512_vnni", quantise, product, gated_product};

}  // namespace lacuna

#if defined(__clang__)
#pragma clang attribute pop
#endif
