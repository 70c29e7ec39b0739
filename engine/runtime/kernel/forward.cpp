#include "forward.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

#include "threads.h"

namespace lacuna {
namespace {

constexpr std::size_t kChunksPerThread = 8;
constexpr std::size_t kWorthSharing = 16384;  // floats to go through; below, waking another thread costs more

// A thread's rounding and flushing of denormals are the caller's while it works for it: results must not depend on who
// takes a chunk.
class FloatMode {
   public:
    explicit FloatMode(unsigned mode) : own_(_mm_getcsr()) { _mm_setcsr(mode); }
    ~FloatMode() { _mm_setcsr(own_); }
    FloatMode(const FloatMode &) = delete;
    FloatMode &operator=(const FloatMode &) = delete;

   private:
    unsigned own_;
};

// `body(chunk, thread)` for every chunk, on the threads there are.
template <typename Body>
void share(int threads, std::size_t chunks, const Body &body) {
    struct Shared {
        const Body &body;
        unsigned mode;
    } const shared{body, _mm_getcsr()};
    const auto call = [](const void *work, std::uint32_t chunk, int thread) {
        const Shared &mine = *static_cast<const Shared *>(work);
        const FloatMode mode(mine.mode);
        mine.body(static_cast<std::size_t>(chunk), thread);
    };
    parallel_chunks(threads, static_cast<std::uint32_t>(chunks), call, &shared);
}

// `body(first, last)` for runs of [0, items) that are neither too many nor too long.
template <typename Body>
void share_runs(int threads, std::size_t items, const Body &body) {
    const std::size_t wanted = threads > 1 ? threads * kChunksPerThread : 1;
    const std::size_t run = (items + wanted - 1) / wanted;
    share(threads, (items + run - 1) / run, [&](std::size_t chunk, int) {
        body(chunk * run, std::min(items, (chunk + 1) * run));
    });
}

int if_worth(int threads, std::size_t floats) { return floats < kWorthSharing ? 1 : threads; }

template <typename T>
T *room(std::vector<T> &kept, std::size_t count) {
    if (kept.size() < count) kept.resize(count);
    return kept.data();
}

Tiles tiles_in(std::vector<std::uint8_t> &values, std::vector<float> &factors, std::size_t rows, std::size_t inputs) {
    const std::size_t padded = (inputs + kInputs - 1) / kInputs * kInputs;
    return {room(values, rows * padded), room(factors, rows), rows};
}

std::size_t largest_rank(const Layer *layers, std::size_t count) {
    std::size_t rank = 0;
    for (const Layer *layer = layers; layer < layers + count; ++layer) {
        rank = std::max({rank, layer->qkv.rank(), layer->output.rank(), layer->gate_up.rank(), layer->down.rank()});
    }
    return rank;
}

void quantise(const Kernel &kernel, const float *x, std::size_t inputs, const Tiles &tiles, int threads) {
    share(if_worth(threads, tiles.rows * inputs), tiles.count(),
          [&](std::size_t tile, int) { kernel.quantise(x, inputs, inputs, tiles, tile); });
}

void product(const Kernel &kernel, const Matrix &matrix, const Tiles &tiles, int threads, bool add, float *y) {
    share_runs(threads, matrix.groups(),
               [&](std::size_t first, std::size_t last) { kernel.product(matrix, tiles, first, last, add, y); });
}

// One pass through the layers: the room it needs, and its stages.
class Pass {
   public:
    Pass(const Kernel &kernel, const Shape &shape, const Rows &rows, std::size_t rank, std::size_t length, int threads,
         Workspace &workspace)
        : kernel_(kernel), shape_(shape), rows_(rows), threads_(threads) {
        const std::size_t count = rows.count, widest = std::max({shape.hidden, shape.intermediate, shape.mixed()});
        tiles_ = tiles_in(workspace.values, workspace.factors, count, widest);
        low_tiles_ = tiles_in(workspace.low_values, workspace.low_factors, count, rank);
        hidden = room(workspace.hidden, count * shape.hidden);
        normed_ = room(workspace.normed, count * shape.hidden);
        fused_ = room(workspace.fused, count * shape.fused());
        mixed_ = room(workspace.mixed, count * shape.mixed());
        gated_ = room(workspace.gated, count * shape.intermediate);
        low_ = room(workspace.low, count * rank);
        room_ = attention_room(shape, rows, {nullptr, nullptr, 0, length});
        rooms_ = room(workspace.rooms, room_ * std::max(1, threads));
    }

    // Keys and values of all rows, and their queries.
    void project(const Layer &layer, const Resident &resident) {
        norm_and_quantise(layer.attention_norm);
        apply(layer.qkv, false, fused_);
        share(if_worth(threads_, rows_.count * shape_.fused()), rows_.count, [&](std::size_t row, int) {
            place(shape_, rows_, resident, row, fused_ + row * shape_.fused());
        });
    }

    // From here on only the first `count` rows are computed.
    void keep(std::size_t count) { tiles_.rows = low_tiles_.rows = count; }

    void attend_and_add(const Layer &layer, const Resident &resident) {
        const std::size_t count = tiles_.rows, blocks = (count + kRowsTogether - 1) / kRowsTogether;
        share(threads_, blocks * shape_.kv_heads, [&](std::size_t chunk, int thread) {
            const std::size_t first = chunk / shape_.kv_heads * kRowsTogether;
            attend(shape_, rows_, resident, chunk % shape_.kv_heads, first, std::min(kRowsTogether, count - first),
                   fused_, rooms_ + room_ * thread, mixed_);
        });
        quantise(kernel_, mixed_, shape_.mixed(), tiles_, threads_);
        apply(layer.output, true, hidden);
    }

    void mlp_and_add(const Layer &layer) {
        norm_and_quantise(layer.mlp_norm);
        const Part &part = layer.gate_up;
        const Matrix *patch = part.rank() != 0 ? &part.up : nullptr;
        if (patch != nullptr) lower(part);
        share_runs(threads_, shape_.intermediate / kChannels, [&](std::size_t first, std::size_t last) {
            kernel_.gated_product(part.base, tiles_, patch, low_tiles_, first, last, gated_);
        });
        quantise(kernel_, gated_, shape_.intermediate, tiles_, threads_);
        apply(layer.down, true, hidden);
    }

    float *hidden;

   private:
    void norm_and_quantise(const float *weight) {
        const std::size_t width = shape_.hidden;
        share(if_worth(threads_, tiles_.rows * width), tiles_.count(), [&](std::size_t tile, int) {
            for (std::size_t row = tiles_.first_row(tile); row < tiles_.first_row(tile + 1); ++row) {
                normalise(hidden + row * width, weight, width, shape_.epsilon, normed_ + row * width);
            }
            kernel_.quantise(normed_, width, width, tiles_, tile);
        });
    }

    // What is quantised in `tiles_`, through a part.
    void apply(const Part &part, bool add, float *y) {
        product(kernel_, part.base, tiles_, threads_, add, y);
        if (part.rank() == 0) return;
        lower(part);
        product(kernel_, part.up, low_tiles_, threads_, true, y);
    }

    void lower(const Part &part) {
        product(kernel_, part.down, tiles_, threads_, false, low_);
        quantise(kernel_, low_, part.rank(), low_tiles_, threads_);
    }

    const Kernel &kernel_;
    const Shape &shape_;
    const Rows &rows_;
    int threads_;
    Tiles tiles_, low_tiles_;
    float *normed_, *fused_, *mixed_, *gated_, *low_, *rooms_;
    std::size_t room_;
};

}  // namespace

void multiply(const Kernel &kernel, const Matrix &matrix, const float *x, std::size_t rows, int threads,
              Workspace &workspace, float *y) {
    const Tiles tiles = tiles_in(workspace.values, workspace.factors, rows, matrix.inputs);
    if (rows == 0 || matrix.outputs == 0) return;
    quantise(kernel, x, matrix.inputs, tiles, threads);
    product(kernel, matrix, tiles, threads, false, y);
}

void run_layers(const Kernel &kernel, const Shape &shape, const Layer *layers, std::size_t count,
                const float *final_norm, const Cache &cache, Rows rows, const float *embedded, std::size_t wanted,
                int threads, Workspace &workspace, float *y) {
    Pass pass(kernel, shape, rows, largest_rank(layers, count), cache.length, threads, workspace);
    std::memcpy(pass.hidden, embedded, rows.count * shape.hidden * sizeof(float));
    const std::size_t each = shape.kv_heads * cache.capacity * shape.head_dim;
    for (std::size_t index = 0; index < count; ++index) {
        float *keys = cache.store + 2 * index * each;
        const Resident resident{keys, keys + each, cache.capacity, cache.length};
        pass.project(layers[index], resident);
        if (index + 1 == count) {
            // Behind the last keys and values only the rows whose logits are wanted matter.
            if (wanted == 0) return;
            pass.keep(wanted);
        }
        pass.attend_and_add(layers[index], resident);
        pass.mlp_and_add(layers[index]);
    }
    for (std::size_t row = 0; row < wanted; ++row) {
        normalise(pass.hidden + row * shape.hidden, final_norm, shape.hidden, shape.epsilon, y + row * shape.hidden);
    }
}

}  // namespace lacuna
