// What a layer does between its products, in float32: norms, rotary positions, attention. Compiled for AVX2 and FMA,
// which every kernel has. No row's result depends on which or how many rows are beside it.
#pragma once

#include <cstddef>

namespace lacuna {

// Sizes of the Qwen2 shape. hidden and intermediate are multiples of 8, head_dim of 16.
struct Shape {
    std::size_t hidden;
    std::size_t heads;
    std::size_t kv_heads;
    std::size_t head_dim;
    std::size_t intermediate;
    float epsilon;

    std::size_t fused() const { return (heads + 2 * kv_heads) * head_dim; }
    std::size_t mixed() const { return heads * head_dim; }
};

// Keys and values of one layer, each [kv_heads][capacity][head_dim]; `length` rows are resident, what lies behind is
// finite.
struct Resident {
    float *keys;
    float *values;
    std::size_t capacity;
    std::size_t length;
};

// The rows of one pass. cosine, sine: [count][head_dim / 2]. bias: [count][positions], 0 or -inf, at least one 0 in
// each row; positions cover the resident rows and these.
struct Rows {
    std::size_t count;
    const float *cosine;
    const float *sine;
    const float *bias;
    std::size_t positions;
};

// y = x / sqrt(mean(x^2) + epsilon) * weight, over `width` floats (Zhang and Sennrich 2019).
void normalise(const float *x, const float *weight, std::size_t width, float epsilon, float *y);

// Rotates the queries of a row's fused [queries, keys, values] in place (Su et al. 2021, half-split) and scales them by
// head_dim^-0.5; puts its rotated keys and its values behind the resident ones, at place `length + row`.
void place(const Shape &shape, const Rows &rows, const Resident &resident, std::size_t row, float *fused);

constexpr std::size_t kRowsTogether = 8;  // rows of one call of `attend`

// How many floats of room `attend` needs for itself.
std::size_t attention_room(const Shape &shape, const Rows &rows, const Resident &resident);

// softmax(Q K^T + bias) V of up to 8 rows from `first` on, for the query heads of one key-value head.
// fused: [rows][fused width], placed; mixed: [rows][heads * head_dim].
void attend(const Shape &shape, const Rows &rows, const Resident &resident, std::size_t kv_head, std::size_t first,
            std::size_t count, const float *fused, float *room, float *mixed);

}  // namespace lacuna
