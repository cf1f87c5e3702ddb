#include "scenario.h"
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex mutex;
static std::condition_variable condition;
static bool ready;
static int counter;

static int threads() {
    std::vector<std::thread> all;
    for (int i = 0; i < 3; i++)
        all.emplace_back([i] {
            std::lock_guard guard(mutex);
            leave("xyz"[i]);
        });
    for (auto &thread : all) thread.join();
    std::puts(letters);
    return 0;
}

static int racing() {
    std::thread other([] { counter = counter + 1; });
    counter = counter + 1;
    other.join();
    std::printf("%d\n", counter);
    return 0;
}

static int jthreads() {
    {
        std::jthread worker([](std::stop_token token) {
            while (!token.stop_requested()) std::this_thread::yield();
            leave('s');
        });
        std::stop_callback called(worker.get_stop_token(), [] { leave('c'); });
    }
    std::puts(letters);
    return 0;
}

static int waiting() {
    std::thread other([] {
        std::lock_guard guard(mutex);
        ready = true;
        condition.notify_one();
    });
    {
        std::unique_lock guard(mutex);
        condition.wait(guard, [] { return ready; });
    }
    other.join();
    std::puts("ready");
    return 0;
}

static int lost() {
    std::thread other([] { condition.notify_one(); });
    std::unique_lock guard(mutex);
    condition.wait(guard);
    guard.unlock();
    other.join();
    std::puts("woken");
    return 0;
}

static int waiting_for() {
    std::thread other([] {
        std::lock_guard guard(mutex);
        ready = true;
        condition.notify_one();
    });
    bool in_time;
    {
        std::unique_lock guard(mutex);
        in_time = condition.wait_for(guard, 100ms, [] { return ready; });
    }
    other.join();
    std::puts(in_time ? "ready" : "timed out");
    return 0;
}

static int any_condition() {
    std::condition_variable_any any;
    std::shared_mutex lock;
    std::thread other([&] {
        std::lock_guard guard(lock);
        ready = true;
        any.notify_all();
    });
    {
        std::shared_lock guard(lock);
        any.wait(guard, [] { return ready; });
    }
    other.join();
    std::puts("ready");
    return 0;
}

static int timed_mutex() {
    std::timed_mutex timed;
    bool got = false;
    std::unique_lock guard(timed);
    std::thread other([&] {
        got = timed.try_lock_for(1s);
        if (got) timed.unlock();
    });
    guard.unlock();
    other.join();
    std::puts(got ? "locked" : "timed out");
    return 0;
}

static int recursive_mutex() {
    std::recursive_mutex recursive;
    auto twice = [&] {
        std::lock_guard outer(recursive);
        std::lock_guard inner(recursive);
        counter++;
    };
    std::thread other(twice);
    twice();
    other.join();
    std::printf("%d\n", counter);
    return 0;
}

static int shared_mutex() {
    std::shared_mutex lock;
    int inside = 0, most = 0;
    std::mutex count;
    auto read = [&] {
        std::shared_lock guard(lock);
        {
            std::lock_guard counting(count);
            most = std::max(most, ++inside);
        }
        std::lock_guard counting(count);
        inside--;
    };
    std::thread one(read), two(read);
    {
        std::unique_lock guard(lock);
        if (inside != 0) std::abort();
    }
    one.join();
    two.join();
    std::printf("%d\n", most);
    return 0;
}

static int scoped_lock() {
    std::mutex other_mutex;
    std::thread other([&] { std::scoped_lock both(mutex, other_mutex); counter++; });
    {
        std::scoped_lock both(other_mutex, mutex);
        counter++;
    }
    other.join();
    std::printf("%d\n", counter);
    return 0;
}

static int sleeping() {
    auto before = std::chrono::steady_clock::now();
    std::thread other([] { std::this_thread::sleep_for(1h); });
    std::this_thread::sleep_until(before + 30min);
    auto between = std::chrono::steady_clock::now();
    other.join();
    auto after = std::chrono::system_clock::now() - std::chrono::system_clock::now();
    auto hours = [](auto d) { return std::chrono::duration_cast<std::chrono::minutes>(d).count(); };
    std::printf("%ld %ld %ld\n", (long)hours(between - before), (long)hours(std::chrono::steady_clock::now() - before),
                (long)hours(after));
    return 0;
}

struct Noisy {
    const char *name;
    ~Noisy() { std::printf("%s ", name); }
};

/* Locks are released and objects destroyed as an exception goes by. */
static int exceptions() {
    auto work = [](const char *what) {
        try {
            std::lock_guard guard(mutex);
            counter++;
            throw std::runtime_error(what);
        } catch (const std::runtime_error &error) {
            std::lock_guard guard(mutex);
            leave(error.what()[0]);
        }
    };
    std::thread one(work, "x"), two(work, "y");
    one.join();
    two.join();
    std::printf("%d %s\n", counter, letters);
    return 0;
}

static int uncaught() {
    std::thread other([] { throw std::runtime_error("nobody catches it"); });
    other.join();
    return 0;
}

static int not_joined() {
    std::thread other([] {});
    return 0;
}

static void *leave_by_exit(void *) {
    Noisy outer{"outer"};
    [] {
        Noisy inner{"inner"};
        pthread_exit(nullptr);
    }();
    return nullptr;
}

static int exit_destroys() {
    pthread_join(start(leave_by_exit, nullptr), nullptr);
    std::puts("joined");
    return 0;
}

static int main_exit_destroys() {
    Noisy noisy{"main"};
    start(nothing, nullptr);
    pthread_exit(nullptr);
}

static thread_local Noisy own{"own"};
static thread_local std::string text = "text";

static int thread_locals() {
    std::thread other([] {
        own.name = "other";
        text += "!";
    });
    other.join();
    own.name = "main";
    std::printf("%s ", text.c_str());
    return 0;
}

struct Counted {
    Counted() { counter++; }
    int value = 42;
};

static int statics() {
    auto use = [] {
        static Counted once;
        return once.value;
    };
    int seen = 0;
    std::thread one([&] { seen = use(); });
    std::thread two(use);
    use();
    one.join();
    two.join();
    std::printf("%d %d\n", counter, seen);
    return 0;
}

static int out_of_memory() {
    volatile size_t much = size_t{1} << 60;
    std::thread other([&] {
        try {
            char *volatile block = static_cast<char *>(operator new(much));
            std::printf("%p\n", block);
        } catch (const std::bad_alloc &) {
            leave('x');
        }
    });
    other.join();
    std::puts(letters);
    return 0;
}

struct Last {
    ~Last() {
        {
            std::lock_guard guard(mutex);
            std::printf("locked ");
        }
        std::puts("last");
    }
};

/* The last thread ends the process in order, and destructors may synchronise. */
static int static_after_main() {
    static Last last;
    start(nothing, nullptr);
    pthread_exit(nullptr);
}

static int abort_in_handler() {
    std::thread other([] {
        try {
            throw 1;
        } catch (int) {
            std::abort();
        }
    });
    other.join();
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(threads);
    SCENARIO(racing);
    SCENARIO(jthreads);
    SCENARIO(waiting);
    SCENARIO(lost);
    SCENARIO(waiting_for);
    SCENARIO(any_condition);
    SCENARIO(timed_mutex);
    SCENARIO(recursive_mutex);
    SCENARIO(shared_mutex);
    SCENARIO(scoped_lock);
    SCENARIO(sleeping);
    SCENARIO(exceptions);
    SCENARIO(uncaught);
    SCENARIO(not_joined);
    SCENARIO(exit_destroys);
    SCENARIO(main_exit_destroys);
    SCENARIO(thread_locals);
    SCENARIO(statics);
    SCENARIO(out_of_memory);
    SCENARIO(static_after_main);
    SCENARIO(abort_in_handler);
    return 91;
}
