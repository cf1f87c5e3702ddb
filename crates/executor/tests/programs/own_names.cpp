// C++ that has functions of its own under names of libc's. Each is called, and does what the program says.
#include "scenario.h"

#include <atomic>
#include <stdexcept>
#include <thread>

extern "C" {
int send(int value) { return value + 1; }
int recv(int value) { return value - 1; }
int dlsym(int value) { return 2 * value; }
int prctl = 5;
}

static int race() {
    std::atomic<int> total{0};
    auto add = [&] {
        try {
            int seen = total.load();
            throw std::runtime_error(std::to_string(seen));
        } catch (const std::runtime_error &error) {
            total.store(std::stoi(error.what()) + send(dlsym(1)) - recv(3) + prctl - 5);
        }
    };
    std::thread one(add), other(add);
    one.join();
    other.join();
    printf("%d\n", total.load());
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(race);
    return 2;
}
