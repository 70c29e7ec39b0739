#include "threads.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace lacuna {
namespace {

using Body = void (*)(const void *, std::uint32_t, int);

// Spinning for about 50 microseconds covers the gap between two products of one forward pass; whoever owns the other
// core gets it back after that.
constexpr int kSpins = 1500;
constexpr int kMaximumThreads = 64;

// The work at hand is named by a ticket: its generation in the upper half, how many chunks nobody has claimed in the
// lower. A chunk is claimed by exchanging the ticket for one with one chunk less. While a chunk is unclaimed its work
// cannot end, so the fields read before a successful exchange belonged to the work a chunk was claimed of. Whether any
// is left must be told by the ticket alone: the fields may already be those of the next work.
class Pool {
   public:
    bool run(int threads, std::uint32_t chunks, Body body, const void *work) {
        if (!busy_.try_lock()) return false;
        grow(threads - 1);
        body_.store(body, std::memory_order_relaxed);
        work_.store(work, std::memory_order_relaxed);
        chunks_.store(chunks, std::memory_order_relaxed);
        helpers_.store(threads - 1, std::memory_order_relaxed);
        finished_.store(0, std::memory_order_relaxed);
        const std::uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
        ticket_.store(generation << 32 | chunks, std::memory_order_seq_cst);
        wake();
        work_on(generation, 0);
        for (int spins = 0; finished_.load(std::memory_order_acquire) != chunks; ++spins) {
            // Whoever has the last chunk may wait for this very core.
            if (spins < kSpins) {
                _mm_pause();
            } else {
                sched_yield();
            }
        }
        busy_.unlock();
        return true;
    }

   private:
    void grow(int workers) {
        if (workers > kMaximumThreads) workers = kMaximumThreads;
        while (workers_ < workers) {
            try {
                std::thread(&Pool::serve, this, workers_).detach();
            } catch (const std::system_error &) {
                return;
            }
            ++workers_;
        }
    }

    void wake() {
        if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
        { std::lock_guard<std::mutex> held(sleep_); }
        awake_.notify_all();
    }

    void work_on(std::uint64_t generation, int thread) {
        std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
        while (true) {
            const auto unclaimed = static_cast<std::uint32_t>(ticket);
            if (ticket >> 32 != generation || unclaimed == 0) return;
            const Body body = body_.load(std::memory_order_relaxed);
            const void *work = work_.load(std::memory_order_relaxed);
            const std::uint32_t chunk = chunks_.load(std::memory_order_relaxed) - unclaimed;
            if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire)) {
                continue;
            }
            body(work, chunk, thread);
            finished_.fetch_add(1, std::memory_order_release);
            ticket = ticket_.load(std::memory_order_acquire);
        }
    }

    void serve(int number) {
        std::uint64_t served = 0;
        while (true) {
            const std::uint64_t generation = next_generation(served);
            served = generation;
            if (number < helpers_.load(std::memory_order_relaxed)) work_on(generation, number + 1);
        }
    }

    std::uint64_t next_generation(std::uint64_t served) {
        for (int spins = 0; spins < kSpins; ++spins) {
            const std::uint64_t generation = ticket_.load(std::memory_order_acquire) >> 32;
            if (generation != served) return generation;
            _mm_pause();
        }
        std::unique_lock<std::mutex> held(sleep_);
        sleeping_.fetch_add(1, std::memory_order_seq_cst);
        std::uint64_t generation = served;
        awake_.wait(held, [&] { return (generation = ticket_.load(std::memory_order_seq_cst) >> 32) != served; });
        sleeping_.fetch_sub(1, std::memory_order_relaxed);
        return generation;
    }

    std::mutex busy_;
    int workers_ = 0;

    alignas(64) std::atomic<std::uint64_t> ticket_{0};
    std::atomic<Body> body_{nullptr};
    std::atomic<const void *> work_{nullptr};
    std::atomic<std::uint32_t> chunks_{0};
    std::atomic<int> helpers_{0};
    alignas(64) std::atomic<std::uint32_t> finished_{0};

    alignas(64) std::atomic<int> sleeping_{0};
    std::mutex sleep_;
    std::condition_variable awake_;
};

std::atomic<Pool *> current{nullptr};

// A forked child has none of the threads and perhaps a locked lock: it starts over with a pool of its own.
void forget_after_fork() { current.store(nullptr, std::memory_order_relaxed); }

// Never destroyed: its threads may outlive every static object.
Pool *pool() {
    Pool *found = current.load(std::memory_order_acquire);
    if (found != nullptr) return found;
    static const int registered = pthread_atfork(nullptr, nullptr, forget_after_fork);
    (void)registered;
    Pool *made = new (std::nothrow) Pool;
    if (made == nullptr) return nullptr;
    if (current.compare_exchange_strong(found, made, std::memory_order_acq_rel)) return made;
    delete made;
    return found;
}

}  // namespace

void parallel_chunks(int threads, std::uint32_t chunks, Body body, const void *work) {
    if (threads > 1 && chunks > 1) {
        Pool *shared = pool();
        if (shared != nullptr && shared->run(threads, chunks, body, work)) return;
    }
    for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) body(work, chunk, 0);
}

}  // namespace lacuna
