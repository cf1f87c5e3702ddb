#include "scenario.h"
#include <atomic>
#include <barrier>
#include <chrono>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>

using namespace std::chrono_literals;

/* Every operation on one width, from two threads; the result is the same in any order. */
template <class T>
static void operations() {
    std::atomic<T> sum{0}, ored{0}, swapped{0}, bound{0};
    auto work = [&](T operand) {
        for (int i = 0; i < 3; i++) {
            sum.fetch_add(operand);
            sum.fetch_sub(1);
        }
        ored.fetch_or(operand);
        ored.fetch_xor(0);
        ored.fetch_and(static_cast<T>(~T{0}));
        T old = swapped.exchange(operand);
        if (old != 0 && old != 5 && old != 10) std::abort();
        T seen = bound.load(std::memory_order_relaxed);
        while (!bound.compare_exchange_weak(seen, static_cast<T>(seen + operand))) {
        }
        T wrong = 99;
        if (bound.compare_exchange_strong(wrong, T{1}) || wrong == 99) std::abort();
    };
    std::thread one(work, T{5}), two(work, T{10});
    one.join();
    two.join();
    T last = swapped.load();
    std::printf("%d %d %d %s\n", (int)sum.load(), (int)ored.load(), (int)bound.load(),
                last == 5 || last == 10 ? "swapped" : "?");
}

static int width8() { return operations<uint8_t>(), 0; }
static int width16() { return operations<uint16_t>(), 0; }
static int width32() { return operations<uint32_t>(), 0; }
static int width64() { return operations<uint64_t>(), 0; }

/* The standard library has no arithmetic on 16 bytes; the compiler has. */
static int width128() {
    using T = unsigned __int128;
    constexpr T unit = (T{1} << 64) | 1;
    alignas(16) static T sum, ored, swapped, bound;
    auto work = [&](T operand) {
        for (int i = 0; i < 3; i++) {
            __atomic_fetch_add(&sum, operand * unit, __ATOMIC_SEQ_CST);
            __atomic_fetch_sub(&sum, unit, __ATOMIC_SEQ_CST);
        }
        __atomic_fetch_or(&ored, operand * unit, __ATOMIC_SEQ_CST);
        __atomic_fetch_xor(&ored, T{0}, __ATOMIC_SEQ_CST);
        __atomic_fetch_and(&ored, ~T{0}, __ATOMIC_SEQ_CST);
        T old = __atomic_exchange_n(&swapped, operand * unit, __ATOMIC_SEQ_CST);
        if (old != 0 && old != 5 * unit && old != 10 * unit) std::abort();
        T seen = __atomic_load_n(&bound, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&bound, &seen, seen + operand * unit, true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
    };
    std::thread one(work, T{5}), two(work, T{10});
    one.join();
    two.join();
    T last = __atomic_load_n(&swapped, __ATOMIC_SEQ_CST);
    __atomic_store_n(&swapped, last / unit, __ATOMIC_SEQ_CST);
    std::printf("%d %d %d %s\n", (int)(sum / unit), (int)(ored / unit), (int)(bound / unit),
                swapped == 5 || swapped == 10 ? "swapped" : "?");
    return 0;
}

/* Unlocked read-modify-write loses an update; nothing else does. */
static int lost_update() {
    std::atomic<int> value{0};
    auto work = [&] { value.store(value.load() + 1); };
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("%d\n", value.load());
    return 0;
}

/* Under sequential consistency at least one thread sees the other's store. */
static int store_buffer() {
    std::atomic<int> x{0}, y{0};
    int a = -1, b = -1;
    std::thread one([&] {
        x.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        a = y.load(std::memory_order_relaxed);
    });
    std::thread two([&] {
        y.store(1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        b = x.load(std::memory_order_relaxed);
    });
    one.join();
    two.join();
    std::printf("%d%d\n", a, b);
    return 0;
}

static int flags() {
    std::atomic_flag flag;
    int counter = 0;
    auto work = [&] {
        while (flag.test_and_set()) std::this_thread::yield();
        counter++;
        flag.clear();
    };
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("%d\n", counter);
    return 0;
}

static int pointers() {
    static int values[4];
    std::atomic<int *> pointer{values};
    std::thread other([&] { pointer.fetch_add(1); });
    pointer++;
    other.join();
    std::printf("%ld\n", (long)(pointer.load() - values));
    return 0;
}

static int doubles() {
    std::atomic<double> sum{0};
    std::thread other([&] { sum.fetch_add(0.5); });
    sum.fetch_add(0.25);
    other.join();
    std::printf("%.2f\n", sum.load());
    return 0;
}

template <class T>
static int wait_and_notify() {
    std::atomic<T> value{0};
    std::thread other([&] {
        value.wait(0);
        if (value.load() != 1) std::abort();
    });
    value.store(1);
    value.notify_one();
    other.join();
    std::puts("woken");
    return 0;
}

static int atomic_wait() { return wait_and_notify<int>(); }
static int atomic_wait_wide() { return wait_and_notify<uint64_t>(); }

static int semaphores() {
    std::counting_semaphore<2> two(2);
    std::binary_semaphore done(0);
    std::atomic<int> inside{0}, most{0};
    auto work = [&] {
        two.acquire();
        int now = ++inside, seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
        two.release();
        done.release();
    };
    std::thread a(work), b(work);
    a.join();
    b.join();
    done.acquire();
    std::printf("%d\n", most.load());
    return 0;
}

static int handing_over() {
    std::binary_semaphore done(0);
    int result = 0;
    std::thread other([&] {
        result = 7;
        done.release();
    });
    done.acquire();
    std::printf("%d\n", result);
    other.join();
    return 0;
}

static int timed_semaphore() {
    std::binary_semaphore semaphore(0);
    bool got = true;
    std::thread other([&] { got = semaphore.try_acquire_for(1s); });
    other.join();
    std::puts(got ? "got" : "timed out");
    return 0;
}

static int latches() {
    std::latch latch(2);
    std::atomic<int> arrived{0};
    auto work = [&] {
        arrived++;
        latch.arrive_and_wait();
        if (arrived != 2) std::abort();
    };
    std::thread other(work);
    work();
    other.join();
    std::printf("%d\n", arrived.load());
    return 0;
}

static int barriers() {
    int phases = 0;
    auto completed = [&]() noexcept { phases++; };
    std::barrier barrier(2, completed);
    std::thread other([&] { barrier.arrive_and_wait(); });
    barrier.arrive_and_wait();
    other.join();
    std::printf("%d\n", phases);
    return 0;
}

static int called_once() {
    std::once_flag once;
    int calls = 0, late = 0;
    auto work = [&] {
        std::call_once(once, [&] { calls++; });
        if (calls != 1) late++;
    };
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("%d %d\n", calls, late);
    return 0;
}

/* A call that throws does not count: the next one tries again. */
static int called_once_again() {
    std::once_flag once;
    std::atomic<int> calls{0}, caught{0};
    auto work = [&] {
        try {
            std::call_once(once, [&] {
                if (++calls == 1) throw std::runtime_error("not yet");
            });
        } catch (const std::runtime_error &) {
            caught++;
        }
    };
    std::thread one(work), two(work);
    one.join();
    two.join();
    std::printf("%d %d\n", calls.load(), caught.load());
    return 0;
}

static int futures() {
    auto answer = std::async(std::launch::async, [] { return 42; });
    auto deferred = std::async(std::launch::deferred, [] { return 1; });
    auto failed = std::async(std::launch::async, []() -> int { throw std::runtime_error("no"); });
    int caught = 0;
    try {
        failed.get();
    } catch (const std::runtime_error &) {
        caught = 1;
    }
    std::printf("%d %d %d\n", answer.get(), deferred.get(), caught);
    return 0;
}

static int promises() {
    std::promise<int> promise;
    auto future = promise.get_future();
    std::thread other([&] { promise.set_value(7); });
    bool in_time = future.wait_for(10ms) == std::future_status::ready;
    int value = future.get();
    other.join();
    std::printf("%d %s\n", value, in_time ? "in time" : "late");
    return 0;
}

static int tasks() {
    std::packaged_task<int(int)> task([](int x) { return x * 2; });
    auto shared = task.get_future().share();
    std::thread other(std::move(task), 21);
    std::printf("%d\n", shared.get());
    other.join();
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(width8);
    SCENARIO(width16);
    SCENARIO(width32);
    SCENARIO(width64);
    SCENARIO(width128);
    SCENARIO(lost_update);
    SCENARIO(store_buffer);
    SCENARIO(flags);
    SCENARIO(pointers);
    SCENARIO(doubles);
    SCENARIO(atomic_wait);
    SCENARIO(atomic_wait_wide);
    SCENARIO(semaphores);
    SCENARIO(handing_over);
    SCENARIO(timed_semaphore);
    SCENARIO(latches);
    SCENARIO(barriers);
    SCENARIO(called_once);
    SCENARIO(called_once_again);
    SCENARIO(futures);
    SCENARIO(promises);
    SCENARIO(tasks);
    return 91;
}
