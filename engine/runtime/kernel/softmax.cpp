#include "softmax.h"

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
constexpr std::size_t kTogether = 64;  // values summed before they join the running sums, which keeps rounding small

inline float sum_of(__m256 x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Calls body(place, values) for every 8 values; the last ones are filled up with `padding`.
template <typename Body>
inline void by_lanes(const float *x, std::size_t first, std::size_t end, float padding, const Body &body) {
    std::size_t place = first;
    for (; place + kLanes <= end; place += kLanes) body(place, _mm256_loadu_ps(x + place));
    if (place == end) return;
    float rest[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) rest[lane] = place + lane < end ? x[place + lane] : padding;
    body(place, _mm256_loadu_ps(rest));
}

// The largest of a row, NaN if there is one.
float highest_of(const float *x, std::size_t width) {
    __m256 highest = _mm256_set1_ps(-INFINITY);
    __m256 unordered = _mm256_setzero_ps();
    by_lanes(x, 0, width, -INFINITY, [&](std::size_t, __m256 values) {
        highest = _mm256_max_ps(highest, values);
        unordered = _mm256_or_ps(unordered, _mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    });
    if (_mm256_movemask_ps(unordered) != 0) return NAN;
    float lanes[kLanes];
    _mm256_storeu_ps(lanes, highest);
    float found = lanes[0];
    for (std::size_t lane = 1; lane < kLanes; ++lane) found = lanes[lane] > found ? lanes[lane] : found;
    return found;
}

std::size_t first_place_of(float wanted, const float *x, std::size_t width) {
    std::size_t place = 0;
    const __m256 all = _mm256_set1_ps(wanted);
    while (place + kLanes <= width &&
           _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x + place), all, _CMP_EQ_OQ)) == 0) {
        place += kLanes;
    }
    while (place + 1 < width && x[place] != wanted) ++place;
    return place;
}

// The sum of those of x[first, end) that are above `bar`.
inline float sum_above(float bar, const float *x, std::size_t first, std::size_t end) {
    const __m256 bars = _mm256_set1_ps(bar);
    __m256 sum = _mm256_setzero_ps();
    by_lanes(x, first, end, 0.0f, [&](std::size_t, __m256 values) {
        sum = _mm256_add_ps(sum, _mm256_and_ps(values, _mm256_cmp_ps(values, bars, _CMP_GT_OQ)));
    });
    return sum_of(sum);
}

inline std::size_t end_of(std::size_t first, std::size_t width) {
    return first + kTogether < width ? first + kTogether : width;
}

double mass_above(float bar, const float *probs, std::size_t width) {
    double total = 0;
    for (std::size_t first = 0; first < width; first += kTogether) {
        total += sum_above(bar, probs, first, end_of(first, width));
    }
    return total;
}

// Where the running sum of what is above `bar` first exceeds `wanted`, else the last such place, else 0.
std::size_t falls(double wanted, float bar, const float *probs, std::size_t width) {
    double running = 0;
    std::size_t last = 0;
    for (std::size_t first = 0; first < width; first += kTogether) {
        const std::size_t end = end_of(first, width);
        const float sum = sum_above(bar, probs, first, end);
        if (!(sum > 0.0f)) continue;
        last = first;
        if (running + sum > wanted) break;
        running += sum;
    }
    // Added up one by one a block may come to a little less than together: then it is its last such place.
    std::size_t found = last;
    for (std::size_t place = last; place < end_of(last, width); ++place) {
        if (!(probs[place] > bar)) continue;
        found = place;
        running += probs[place];
        if (running > wanted) break;
    }
    return found;
}

inline void store(float *y, std::size_t place, std::size_t width, __m256 values) {
    if (place + kLanes <= width) {
        _mm256_storeu_ps(y + place, values);
    } else {
        float rest[kLanes];
        _mm256_storeu_ps(rest, values);
        std::memcpy(y + place, rest, (width - place) * sizeof(float));
    }
}

}  // namespace

Peak softmax(const float *logits, std::size_t width, float *probs) {
    const float highest = highest_of(logits, width);
    if (!std::isfinite(highest)) {
        for (std::size_t place = 0; place < width; ++place) probs[place] = NAN;
        return {0, NAN, NAN};
    }
    const __m256 top = _mm256_set1_ps(highest);
    // exp is 0 below this, and 0 times -inf would be no number.
    const __m256 lowest = _mm256_set1_ps(-100.0f);
    __m256 total = _mm256_setzero_ps();
    __m256 weighted = _mm256_setzero_ps();
    for (std::size_t first = 0; first < width; first += kTogether) {
        const std::size_t end = first + kTogether < width ? first + kTogether : width;
        __m256 sum = _mm256_setzero_ps();
        __m256 product = _mm256_setzero_ps();
        by_lanes(logits, first, end, -INFINITY, [&](std::size_t place, __m256 values) {
            const __m256 below = _mm256_max_ps(_mm256_sub_ps(values, top), lowest);
            const __m256 chance = exponential(below);
            sum = _mm256_add_ps(sum, chance);
            product = _mm256_fmadd_ps(below, chance, product);
            store(probs, place, width, chance);
        });
        total = _mm256_add_ps(total, sum);
        weighted = _mm256_add_ps(weighted, product);
    }
    // The likeliest id's own exponential is 1.
    const float sum = sum_of(total);
    const float best = 1.0f / sum;
    const __m256 factor = _mm256_set1_ps(best);
    by_lanes(probs, 0, width, 0.0f, [&](std::size_t place, __m256 values) {
        store(probs, place, width, _mm256_mul_ps(values, factor));
    });
    // -sum p log p, with log p = x - highest - log(sum).
    const float entropy = std::log(sum) - sum_of(weighted) * best;
    return {static_cast<std::int64_t>(first_place_of(highest, logits, width)), best, entropy > 0.0f ? entropy : 0.0f};
}

// An id is of the nucleus if those likelier than it hold less than top_p. One that is not is drawn again from the ids
// that are likelier: all of the nucleus is among them, so what is accepted at last is distributed as the nucleus is.
std::int64_t drawn(const float *probs, std::size_t width, const float *dice, std::size_t tries, float top_p) {
    float bar = 0.0f;
    // But for rounding, which is less than what tells two dice apart.
    double mass = 1.0;
    for (std::size_t attempt = 0; attempt < tries; ++attempt) {
        const std::size_t place = falls(dice[attempt] * mass, bar, probs, width);
        // Whatever is likelier has no more than the rest of the mass: a likely id needs no looking at the others.
        if (top_p >= 1.0f || !(probs[place] <= 1.0f - top_p)) return static_cast<std::int64_t>(place);
        const double likelier = mass_above(probs[place], probs, width);
        if (likelier < top_p) return static_cast<std::int64_t>(place);
        bar = probs[place];
        mass = likelier;
    }
    return -1;
}

}  // namespace lacuna

#if defined(__clang__)
#pragma clang attribute pop
#endif
