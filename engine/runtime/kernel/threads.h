// A few threads that share one piece of work at a time: `parallel_chunks`.
#pragma once

#include <cstdint>

namespace lacuna {

// Calls `body(work, chunk, thread)` once for every chunk in [0, chunks), on up to `threads` threads, this one included,
// and returns when all calls are done. Which thread runs which chunk is left open, so a chunk must not care; `thread` is
// below `threads` and nobody else's at that time.
//
// Threads that have nothing to do spin for a moment, because the next piece of work usually follows at once, then
// sleep. A thread that is late is not waited for: the others take its chunks. Two callers at a time are fine: the
// second works alone. Never throws; without new threads the caller does everything itself.
void parallel_chunks(int threads, std::uint32_t chunks, void (*body)(const void *work, std::uint32_t chunk, int thread),
                     const void *work);

}  // namespace lacuna
