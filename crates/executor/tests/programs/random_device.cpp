#include "scenario.h"
#include <fstream>
#include <random>
#include <thread>

static int draw() {
    std::thread([] {}).join();
    std::random_device standard, named("/dev/urandom");
    std::ifstream file("/dev/urandom", std::ios::binary);
    unsigned number = 0;
    file.read(reinterpret_cast<char *>(&number), sizeof number);
    std::printf("%u %u %u %zu\n", standard(), named(), number, std::hash<std::thread::id>()(std::this_thread::get_id()));
    return 0;
}

int main(int argc, char **argv) {
    SCENARIO(draw);
    return 91;
}
