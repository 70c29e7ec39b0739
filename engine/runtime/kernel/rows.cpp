#include "rows.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <limits>

// Nothing of the standard library is included behind this line, and little of it used: see product_avx2.cpp.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

namespace lacuna {
namespace {

#include "exponential.h"

constexpr std::size_t kLanes = 8;
constexpr std::size_t kBlock = 64;  // positions whose values stay in the first-level cache
constexpr int kQueries = 8;         // queries whose sums are in registers at once

inline float sum_of(__m256 x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline float largest_of(__m256 x) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// 8 rows of 8 floats, `stride` apart, as 8 columns.
inline void transpose(const float *rows, std::size_t stride, float *columns) {
    __m256 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(rows + i * stride);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
        b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
        const int i = 4 * half;
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        _mm256_storeu_ps(columns + i * kLanes, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(columns + (i + 4) * kLanes, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

// Scores of kCount queries [kCount][dim] with 8 positions, whose keys lie as columns [dim][8].
template <int kCount>
void score(const float *queries, const float *columns, std::size_t dim, float *scores, std::size_t stride) {
    __m256 sums[kCount];
#pragma GCC unroll 8
    for (int query = 0; query < kCount; ++query) sums[query] = _mm256_setzero_ps();
    for (std::size_t d = 0; d < dim; ++d) {
        const __m256 keys = _mm256_loadu_ps(columns + d * kLanes);
#pragma GCC unroll 8
        for (int query = 0; query < kCount; ++query) {
            sums[query] = _mm256_fmadd_ps(_mm256_broadcast_ss(queries + query * dim + d), keys, sums[query]);
        }
    }
#pragma GCC unroll 8
    for (int query = 0; query < kCount; ++query) _mm256_storeu_ps(scores + query * stride, sums[query]);
}

// Adds the values [count][dim] of some positions, weighted, to 16 columns of kCount sums [kCount][dim].
template <int kCount>
void weigh(const float *weights, std::size_t stride, const float *values, std::size_t count, std::size_t dim,
           float *sums) {
    __m256 low[kCount], high[kCount];
#pragma GCC unroll 4
    for (int query = 0; query < kCount; ++query) {
        low[query] = _mm256_loadu_ps(sums + query * dim);
        high[query] = _mm256_loadu_ps(sums + query * dim + kLanes);
    }
    for (std::size_t position = 0; position < count; ++position) {
        const __m256 first = _mm256_loadu_ps(values + position * dim);
        const __m256 second = _mm256_loadu_ps(values + position * dim + kLanes);
#pragma GCC unroll 4
        for (int query = 0; query < kCount; ++query) {
            const __m256 weight = _mm256_broadcast_ss(weights + query * stride + position);
            low[query] = _mm256_fmadd_ps(weight, first, low[query]);
            high[query] = _mm256_fmadd_ps(weight, second, high[query]);
        }
    }
#pragma GCC unroll 4
    for (int query = 0; query < kCount; ++query) {
        _mm256_storeu_ps(sums + query * dim, low[query]);
        _mm256_storeu_ps(sums + query * dim + kLanes, high[query]);
    }
}

using Score = void (*)(const float *, const float *, std::size_t, float *, std::size_t);
using Weigh = void (*)(const float *, std::size_t, const float *, std::size_t, std::size_t, float *);

constexpr Score score_of[kQueries] = {score<1>, score<2>, score<3>, score<4>, score<5>, score<6>, score<7>, score<8>};
constexpr int kWeighed = 4;
constexpr Weigh weigh_of[kWeighed] = {weigh<1>, weigh<2>, weigh<3>, weigh<4>};

// Turns scores into exp(score + bias - largest), in place; returns one over their sum.
inline float exponentials(float *scores, const float *bias, std::size_t positions) {
    __m256 largest = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (std::size_t p = 0; p < positions; p += kLanes) {
        const __m256 seen = _mm256_add_ps(_mm256_loadu_ps(scores + p), _mm256_loadu_ps(bias + p));
        _mm256_storeu_ps(scores + p, seen);
        largest = _mm256_max_ps(largest, seen);
    }
    const __m256 top = _mm256_set1_ps(largest_of(largest));
    __m256 sum = _mm256_setzero_ps();
    for (std::size_t p = 0; p < positions; p += kLanes) {
        const __m256 weight = exponential(_mm256_sub_ps(_mm256_loadu_ps(scores + p), top));
        _mm256_storeu_ps(scores + p, weight);
        sum = _mm256_add_ps(sum, weight);
    }
    return 1.0f / sum_of(sum);
}

inline void rotated(const float *x, const float *cosine, const float *sine, std::size_t dim, float scale, float *y) {
    const std::size_t half = dim / 2;
    const __m256 factor = _mm256_set1_ps(scale);
    for (std::size_t d = 0; d < half; d += kLanes) {
        const __m256 c = _mm256_loadu_ps(cosine + d), s = _mm256_loadu_ps(sine + d);
        const __m256 first = _mm256_loadu_ps(x + d), second = _mm256_loadu_ps(x + half + d);
        const __m256 low = _mm256_sub_ps(_mm256_mul_ps(first, c), _mm256_mul_ps(second, s));
        const __m256 high = _mm256_add_ps(_mm256_mul_ps(second, c), _mm256_mul_ps(first, s));
        _mm256_storeu_ps(y + d, _mm256_mul_ps(low, factor));
        _mm256_storeu_ps(y + half + d, _mm256_mul_ps(high, factor));
    }
}

}  // namespace

void normalise(const float *x, const float *weight, std::size_t width, float epsilon, float *y) {
    __m256 squares = _mm256_setzero_ps();
    for (std::size_t k = 0; k < width; k += kLanes) {
        const __m256 eight = _mm256_loadu_ps(x + k);
        squares = _mm256_fmadd_ps(eight, eight, squares);
    }
    const __m256 inverse = _mm256_set1_ps(1.0f / std::sqrt(sum_of(squares) / static_cast<float>(width) + epsilon));
    for (std::size_t k = 0; k < width; k += kLanes) {
        const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + k), inverse);
        _mm256_storeu_ps(y + k, _mm256_mul_ps(scaled, _mm256_loadu_ps(weight + k)));
    }
}

void place(const Shape &shape, const Rows &rows, const Resident &resident, std::size_t row, float *fused) {
    const std::size_t dim = shape.head_dim, place_of_row = resident.length + row;
    const float *cosine = rows.cosine + row * dim / 2, *sine = rows.sine + row * dim / 2;
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (std::size_t head = 0; head < shape.heads; ++head) {
        rotated(fused + head * dim, cosine, sine, dim, scale, fused + head * dim);
    }
    const float *keys = fused + shape.mixed(), *values = keys + shape.kv_heads * dim;
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
        const std::size_t target = (head * resident.capacity + place_of_row) * dim;
        rotated(keys + head * dim, cosine, sine, dim, 1.0f, resident.keys + target);
        std::memcpy(resident.values + target, values + head * dim, dim * sizeof(float));
    }
}

// Whole vectors of positions; those behind the last row are masked like all that a row does not see.
static std::size_t whole_positions(const Rows &rows, const Resident &resident) {
    return (resident.length + rows.count + kLanes - 1) / kLanes * kLanes;
}

// As many positions as any of some rows sees, in whole vectors: what lies behind would only add zeros. Of a long prompt's
// rows the first ones see much less than the last.
static std::size_t seen_positions(const Rows &rows, std::size_t first, std::size_t count, std::size_t positions) {
    const __m256 hidden = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    for (; positions > kLanes; positions -= kLanes) {
        for (std::size_t row = first; row < first + count; ++row) {
            const __m256 bias = _mm256_loadu_ps(rows.bias + row * rows.positions + positions - kLanes);
            if (_mm256_movemask_ps(_mm256_cmp_ps(bias, hidden, _CMP_NEQ_UQ)) != 0) return positions;
        }
    }
    return positions;
}

std::size_t attention_room(const Shape &shape, const Rows &rows, const Resident &resident) {
    const std::size_t queries = kRowsTogether * (shape.heads / shape.kv_heads);
    return queries * (whole_positions(rows, resident) + 2 * shape.head_dim + 1) + shape.head_dim * kLanes;
}

void attend(const Shape &shape, const Rows &rows, const Resident &resident, std::size_t kv_head, std::size_t first,
            std::size_t count, const float *fused, float *room, float *mixed) {
    const std::size_t dim = shape.head_dim, heads = shape.heads / shape.kv_heads, queries = count * heads;
    const std::size_t positions = seen_positions(rows, first, count, whole_positions(rows, resident));
    float *scores = room, *asked = scores + queries * positions, *sums = asked + queries * dim;
    float *inverse = sums + queries * dim, *columns = inverse + queries;
    for (std::size_t query = 0; query < queries; ++query) {
        const float *source = fused + (first + query / heads) * shape.fused() + (kv_head * heads + query % heads) * dim;
        std::memcpy(asked + query * dim, source, dim * sizeof(float));
    }
    const float *keys = resident.keys + kv_head * resident.capacity * dim;
    for (std::size_t p = 0; p < positions; p += kLanes) {
        for (std::size_t d = 0; d < dim; d += kLanes) transpose(keys + p * dim + d, dim, columns + d * kLanes);
        for (std::size_t query = 0; query < queries; query += kQueries) {
            const std::size_t together = queries - query < kQueries ? queries - query : kQueries;
            score_of[together - 1](asked + query * dim, columns, dim, scores + query * positions + p, positions);
        }
    }
    for (std::size_t query = 0; query < queries; ++query) {
        const float *bias = rows.bias + (first + query / heads) * rows.positions;
        inverse[query] = exponentials(scores + query * positions, bias, positions);
    }
    std::memset(sums, 0, queries * dim * sizeof(float));
    const float *values = resident.values + kv_head * resident.capacity * dim;
    for (std::size_t p = 0; p < positions; p += kBlock) {
        const std::size_t block = positions - p < kBlock ? positions - p : kBlock;
        for (std::size_t query = 0; query < queries; query += kWeighed) {
            const std::size_t together = queries - query < kWeighed ? queries - query : kWeighed;
            for (std::size_t d = 0; d < dim; d += 2 * kLanes) {
                weigh_of[together - 1](scores + query * positions + p, positions, values + p * dim + d, block, dim,
                                       sums + query * dim + d);
            }
        }
    }
    for (std::size_t query = 0; query < queries; ++query) {
        const __m256 factor = _mm256_set1_ps(inverse[query]);
        float *target = mixed + (first + query / heads) * shape.mixed() + (kv_head * heads + query % heads) * dim;
        for (std::size_t d = 0; d < dim; d += kLanes) {
            _mm256_storeu_ps(target + d, _mm256_mul_ps(_mm256_loadu_ps(sums + query * dim + d), factor));
        }
    }
}

}  // namespace lacuna

#if defined(__clang__)
#pragma clang attribute pop
#endif
