// The functions of one `Kernel`, once per set of instructions: include inside an anonymous namespace, with the target
// switched on and `add_products` defined.

// Weights are asked for so many bytes before they are used: memory answers in time, and they are still there then.
constexpr std::size_t kPrefetchBytes = 4096;
constexpr float kInputScale = 1.0f / 127.5f;

// The bits of a float without its sign order like its magnitude, and what is not finite is largest of all.
inline std::int32_t largest_magnitude(const float *row, std::size_t inputs) {
    const __m256i unsigned_bits = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
    std::size_t k = 0;
    for (; k + 8 <= inputs; k += 8) {
        const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(row + k));
        largest = _mm256_max_epi32(largest, _mm256_and_si256(bits, unsigned_bits));
    }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i *>(lanes), largest);
    std::int32_t result = 0;
    for (std::int32_t lane : lanes) result = lane > result ? lane : result;
    for (; k < inputs; ++k) {
        std::int32_t bits;
        std::memcpy(&bits, row + k, sizeof bits);
        bits &= 0x7fffffff;
        result = bits > result ? bits : result;
    }
    return result;
}

// 8 floats, divided by `maximum`, as integers from 0 to 255 around 128. The factor is what torch takes for the inverse
// of its scale, so that its kernels get the same integers.
inline __m256i quantised(__m256 x, __m256 maximum) {
    const __m256 steps = _mm256_set1_ps(1.0f / kInputScale), zero_point = _mm256_set1_ps(128.0f);
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_div_ps(x, maximum), steps, zero_point));
}

// Four inputs as one number, the first in its lowest byte; two such numbers from 8 values.
inline void put(__m256i values, std::uint8_t *target, std::size_t step_bytes, bool both) {
    const __m128i low = _mm256_castsi256_si128(values), high = _mm256_extracti128_si256(values, 1);
    const __m128i bytes = _mm_packus_epi16(_mm_packus_epi32(low, high), _mm_setzero_si128());
    const std::int32_t first = _mm_cvtsi128_si32(bytes), second = _mm_extract_epi32(bytes, 1);
    std::memcpy(target, &first, sizeof first);
    if (both) std::memcpy(target + step_bytes, &second, sizeof second);
}

inline void quantise_row(const float *row, std::size_t inputs, float *factor, std::uint8_t *target,
                         std::size_t step_bytes) {
    const std::int32_t bits = largest_magnitude(row, inputs);
    float maximum;
    std::memcpy(&maximum, &bits, sizeof maximum);
    const bool finite = bits < 0x7f800000;
    maximum = !finite ? std::numeric_limits<float>::infinity() : maximum > 1e-9f ? maximum : 1e-9f;
    // A row that is not finite has no meaningful result anywhere, and must not look as if it had.
    *factor = finite ? maximum * kInputScale : std::numeric_limits<float>::quiet_NaN();
    const __m256 divisor = _mm256_set1_ps(maximum);
    std::size_t k = 0;
    for (; k + 8 <= inputs; k += 8, target += 2 * step_bytes) {
        put(quantised(_mm256_loadu_ps(row + k), divisor), target, step_bytes, true);
    }
    if (k < inputs) {
        alignas(32) float rest[8] = {};
        std::memcpy(rest, row + k, (inputs - k) * sizeof(float));
        put(quantised(_mm256_load_ps(rest), divisor), target, step_bytes, inputs - k > kInputs);
    }
}

void quantise(const float *x, std::size_t stride, std::size_t inputs, const Tiles &tiles, std::size_t tile) {
    const std::size_t first = tiles.first_row(tile), rows = tiles.first_row(tile + 1) - first;
    const std::size_t steps = (inputs + kInputs - 1) / kInputs;
    std::uint8_t *values = tiles.values + first * steps * kInputs;
    for (std::size_t row = 0; row < rows; ++row) {
        quantise_row(x + (first + row) * stride, inputs, tiles.factors + first + row, values + row * kInputs,
                     rows * kInputs);
    }
}

struct Channels {
    __m256i correction;
    __m256 scale;
    __m256 bias;
    std::size_t count;
};

inline Channels channels_of(const Matrix &matrix, std::size_t group) {
    const std::size_t start = group * kChannels;
    const std::size_t count = matrix.outputs - start < kChannels ? matrix.outputs - start : kChannels;
    alignas(32) float scale[kChannels] = {}, bias[kChannels] = {};
    std::memcpy(scale, matrix.scale + start, count * sizeof(float));
    if (matrix.bias != nullptr) std::memcpy(bias, matrix.bias + start, count * sizeof(float));
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(matrix.correction + start)),
            _mm256_load_ps(scale), _mm256_load_ps(bias), count};
}

inline __m256 finished(__m256i sum, const Channels &channels, float factor) {
    const __m256 exact = _mm256_cvtepi32_ps(_mm256_sub_epi32(sum, channels.correction));
    const __m256 scaled = _mm256_mul_ps(_mm256_mul_ps(exact, channels.scale), _mm256_set1_ps(factor));
    return _mm256_add_ps(scaled, channels.bias);
}

inline void finish(__m256i sum, const Channels &channels, float factor, bool add, float *y) {
    const __m256 result = finished(sum, channels, factor);
    if (channels.count == kChannels) {
        _mm256_storeu_ps(y, add ? _mm256_add_ps(_mm256_loadu_ps(y), result) : result);
        return;
    }
    alignas(32) float lanes[kChannels];
    _mm256_store_ps(lanes, result);
    std::memcpy(y, lanes, channels.count * sizeof(float));
}

// One tile of kRows rows with one group of channels. Weights are read once, in order; the values are broadcast, so
// that each lane sums up one channel and nothing is added across lanes.
template <int kRows>
void tile_product(const std::int8_t *weights, const std::uint8_t *values, std::size_t steps, const Channels &channels,
                  const float *factors, std::size_t ahead, bool add, float *y, std::size_t outputs) {
    __m256i sums[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) sums[row] = _mm256_setzero_si256();
    for (std::size_t step = 0; step < steps; ++step) {
        const __m256i weight = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(weights + step * kVectorBytes));
        _mm_prefetch(reinterpret_cast<const char *>(weights + step * kVectorBytes + ahead), _MM_HINT_T0);
        const std::uint8_t *inputs = values + step * kRows * kInputs;
#pragma GCC unroll 8
        for (int row = 0; row < kRows; ++row) {
            std::int32_t four;
            std::memcpy(&four, inputs + row * kInputs, sizeof four);
            sums[row] = add_products(sums[row], _mm256_set1_epi32(four), weight);
            // One row after another: left to itself the compiler begins all rows at once and runs out of registers.
            __asm__("" : "+x"(sums[row]));
        }
    }
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) finish(sums[row], channels, factors[row], add, y + row * outputs);
}

using TileProduct = void (*)(const std::int8_t *, const std::uint8_t *, std::size_t, const Channels &, const float *,
                             std::size_t, bool, float *, std::size_t);

constexpr TileProduct by_rows[kTileRows] = {
    tile_product<1>, tile_product<2>, tile_product<3>, tile_product<4>,
    tile_product<5>, tile_product<6>, tile_product<7>, tile_product<8>,
};

// One tile with one group of channels; y is where the tile's first row has the group's first channel.
inline void tile_of_group(const Matrix &matrix, const Tiles &tiles, std::size_t group, std::size_t tile,
                          const Channels &channels, bool add, float *y, std::size_t outputs) {
    const std::size_t steps = matrix.steps();
    const std::size_t row = tiles.first_row(tile), rows = tiles.first_row(tile + 1) - row;
    // Memory is read while the last tile of a group is computed: a little ahead when there is one tile, else the group
    // that follows.
    const std::size_t ahead = tiles.count() == 1          ? kPrefetchBytes
                              : tile + 1 == tiles.count() ? steps * kVectorBytes
                                                          : 0;
    by_rows[rows - 1](matrix.weights + group * steps * kVectorBytes, tiles.values + row * steps * kInputs, steps,
                      channels, tiles.factors + row, ahead, add, y, outputs);
}

void product(const Matrix &matrix, const Tiles &tiles, std::size_t first, std::size_t last, bool add, float *y) {
    for (std::size_t group = first; group < last; ++group) {
        const Channels channels = channels_of(matrix, group);
        for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
            tile_of_group(matrix, tiles, group, tile, channels, add,
                          y + tiles.first_row(tile) * matrix.outputs + group * kChannels, matrix.outputs);
        }
    }
}

void gated_product(const Matrix &matrix, const Tiles &tiles, const Matrix *patch, const Tiles &patch_tiles,
                   std::size_t first, std::size_t last, float *y) {
    const std::size_t width = matrix.outputs / 2;
    alignas(32) float halves[2][kTileRows * kChannels];  // gate, then up
    for (std::size_t group = first; group < last; ++group) {
        const std::size_t groups[2] = {group, group + width / kChannels};
        const Channels channels[2] = {channels_of(matrix, groups[0]), channels_of(matrix, groups[1])};
        for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
            for (int half = 0; half < 2; ++half) {
                tile_of_group(matrix, tiles, groups[half], tile, channels[half], false, halves[half], kChannels);
                if (patch == nullptr) continue;
                tile_of_group(*patch, patch_tiles, groups[half], tile, channels_of(*patch, groups[half]), true,
                              halves[half], kChannels);
            }
            for (std::size_t row = tiles.first_row(tile); row < tiles.first_row(tile + 1); ++row) {
                const std::size_t of_tile = (row - tiles.first_row(tile)) * kChannels;
                const __m256 activated = silu(_mm256_load_ps(halves[0] + of_tile));
                _mm256_storeu_ps(y + row * width + group * kChannels,
                                 _mm256_mul_ps(activated, _mm256_load_ps(halves[1] + of_tile)));
            }
        }
    }
}
