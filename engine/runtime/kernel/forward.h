// Products shared among threads, and on top of them all layers of a pass in one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "product.h"
#include "rows.h"

namespace lacuna {

// One of a layer's matrices, with a low-rank patch beside it where `down` has weights: base(x) + up(down(x)), the
// values between the two quantised like any others.
struct Part {
    Matrix base;
    Matrix down;
    Matrix up;

    std::size_t rank() const { return down.weights != nullptr ? down.outputs : 0; }
};

struct Layer {
    const float *attention_norm;
    const float *mlp_norm;
    Part qkv;
    Part output;
    Part gate_up;
    Part down;
};

// Keys and values of all layers: [layers][2][kv_heads][capacity][head_dim], `length` rows resident.
struct Cache {
    float *store;
    std::size_t capacity;
    std::size_t length;
};

// What one calling thread needs from call to call; it only grows.
struct Workspace {
    std::vector<std::uint8_t> values, low_values;
    std::vector<float> factors, low_factors, low, hidden, normed, fused, mixed, gated, rooms;
};

// y = x W^T + bias; x: [rows][inputs], y: [rows][outputs]. Throws std::bad_alloc before anything is computed.
void multiply(const Kernel &kernel, const Matrix &matrix, const float *x, std::size_t rows, int threads,
              Workspace &workspace, float *y);

// Runs rows.count embedded rows [count][hidden] through the layers, puts their keys and values behind the resident ones
// and the last norm of the first `wanted` rows into y [wanted][hidden]. Throws std::bad_alloc before anything is
// computed.
void run_layers(const Kernel &kernel, const Shape &shape, const Layer *layers, std::size_t count,
                const float *final_norm, const Cache &cache, Rows rows, const float *embedded, std::size_t wanted,
                int threads, Workspace &workspace, float *y);

}  // namespace lacuna
