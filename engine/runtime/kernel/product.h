// int8 matrix products over weights packed for 256-bit vectors: what they take, and which instructions do them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna {

constexpr int kChannels = 8;  // output channels in one vector of weights
constexpr int kInputs = 4;    // inputs of each channel in one vector of weights
constexpr int kVectorBytes = kChannels * kInputs;
constexpr int kTileRows = 8;  // rows whose sums are in registers at once

// y[row][channel] = factor[row] * scale[channel] * sum_k (quantised(x)[row][k] - 128) * weight[channel][k] + bias
//
// weights: [ceil(outputs / 8)][ceil(inputs / 4)][8 channels][4 inputs], zero where there is no channel or input, each
// from -63 to 63, because AVX2 adds pairs of products in 16 bits. correction: 128 * sum_k weight, one per channel and
// padded like the weights; scale and bias: [outputs], bias may be null.
struct Matrix {
    const std::int8_t *weights;
    const std::int32_t *correction;
    const float *scale;
    const float *bias;
    std::size_t inputs;
    std::size_t outputs;

    std::size_t groups() const { return (outputs + kChannels - 1) / kChannels; }
    std::size_t steps() const { return (inputs + kInputs - 1) / kInputs; }
};

// Rows as the product reads them: tiles of up to 8 rows, one after another, each [steps][rows of the tile][4 inputs],
// unsigned with zero point 128. The tiles are as equal as can be. factor: per row, what a sum is multiplied with.
struct Tiles {
    std::uint8_t *values;
    float *factors;
    std::size_t rows;

    std::size_t count() const { return (rows + kTileRows - 1) / kTileRows; }
    // Of `count` tiles this one's rows begin here; those of the next one end them.
    std::size_t first_row(std::size_t tile) const { return tile * rows / count(); }
};

// One set of instructions. Each function gives bit for bit what every other set gives.
struct Kernel {
    const char *name;
    // Quantises the rows of tile `tile` from x [rows][inputs], which lie `stride` floats apart.
    void (*quantise)(const float *x, std::size_t stride, std::size_t inputs, const Tiles &tiles, std::size_t tile);
    // Puts the result of all rows for the groups [first, last) of 8 channels into y [rows][outputs], or with `add`
    // adds it to what is there, for outputs that are a multiple of 8.
    void (*product)(const Matrix &matrix, const Tiles &tiles, std::size_t first, std::size_t last, bool add, float *y);
    // silu(gate) * up into y [rows][outputs / 2] for groups of its channels; gate and up are the halves of the result,
    // each a multiple of 8 wide. What `patch`, unless null, makes of its tiles is added to both before.
    void (*gated_product)(const Matrix &matrix, const Tiles &tiles, const Matrix *patch, const Tiles &patch_tiles,
                          std::size_t first, std::size_t last, float *y);
};

// The kernels this processor can run, the fastest first; `count` of them.
const Kernel *const *kernels(int &count);

// The sets themselves; not to be called where the processor lacks the instructions.
extern const Kernel avx2_kernel, avx_vnni_kernel, avx512_vnni_kernel;

}  // namespace lacuna
