#include "product.h"

#include <immintrin.h>

#include <cstring>
#include <limits>

// Nothing of the standard library is included behind this line: no function that other files share may be compiled
// for instructions that might not be there.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

namespace lacuna {
namespace {

// 8 sums of 4 products each. The pairs' sums stay below 2 * 255 * 63 = 32130 and so within 16 bits.
inline __m256i add_products(__m256i sums, __m256i values, __m256i weights) {
    const __m256i pairs = _mm256_maddubs_epi16(values, weights);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

#include "exponential.h"
#include "product_body.h"

}  // namespace

const Kernel avx2_kernel = {"avx2", quantise, product, gated_product};

}  // namespace lacuna

#if defined(__clang__)
#pragma clang attribute pop
#endif
