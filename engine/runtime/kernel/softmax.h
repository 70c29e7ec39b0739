// What a step of denoising reads of each place's logits, in float32: softmax with what comes of it on the way, and
// draws. Compiled for AVX2 and FMA, which every kernel has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna {

// Of one row: the first place of the largest logit, its probability, and the entropy in nats, at least 0.
struct Peak {
    std::int64_t likeliest;
    float best;
    float entropy;
};

// probs = softmax(logits), both [width] and never the same memory; -inf is a probability of 0. A row that holds NaN, or
// nothing finite, or +inf, gives NaN everywhere and place 0.
Peak softmax(const float *logits, std::size_t width, float *probs);

// A place drawn from `width` probabilities that sum to 1, never one of probability 0: of the smallest set of likeliest
// places that holds `top_p` of the mass (Holtzman et al. 2020) and those as likely as its last; of all of them if top_p
// is 1. -1 if `tries` dice, each in [0, 1), did not suffice. Some place of the row, if it holds no usable number.
std::int64_t drawn(const float *probs, std::size_t width, const float *dice, std::size_t tries, float top_p);

}  // namespace lacuna
