// Small functions whose branches and stores depend on known loads. See values.c.
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#define APART __attribute__((noinline))

int amount, limit, flag, total, out, mode, which;
std::atomic<int> ready, turns;
std::mutex guard, guards[4];

struct Shape {
    int sides;
    virtual int area() const { return sides * amount; }
    virtual ~Shape() {}
};
struct Square : Shape {
    int width;
    int area() const override { return width * width; }
};
Shape *shape;
std::vector<int> values;

APART void dynamic_call() {
    if (shape->area() > limit) // branch: limit; call: shape
        out = 1;
}

APART int &chosen(int &a, int &b) {
    return flag ? a : b;
}

APART void references() {
    chosen(total, out) = amount; // store: amount, flag
}

struct Range {
    int from, to;
    bool contains(int value) const { return value >= from && value < to; }
};

APART void by_value() {
    Range range{amount, limit};
    if (range.contains(mode)) // branch: amount, limit, mode
        out = 2;
}

APART void captured() {
    int threshold = limit;
    auto above = [&](int value) { return value > threshold; };
    if (above(amount)) // branch: limit, amount
        out = 3;
}

APART void from_vector() {
    int sum = 0;
    for (int value : values) // branch: values|__normal_iterator
        sum += value;
    total = sum; // store: value
}

APART void may_throw(int value) {
    if (value > limit) // branch: limit, amount
        throw std::runtime_error("too much");
    out = value; // store: amount
}

APART void caught() {
    try {
        may_throw(amount);
    } catch (const std::exception &) {
        total = limit; // store: limit
    }
}

APART void standard_atomics() {
    if (ready.load(std::memory_order_acquire)) // branch: ready
        out = turns.fetch_add(amount); // store: turns
    int expected = mode;
    while (!turns.compare_exchange_weak(expected, expected + limit)) {} // branch: turns, mode
}

APART void guarded() {
    std::lock_guard<std::mutex> held(guards[which]);
    total += amount; // store: total, amount
}

template <typename T> APART T larger(const T &a, const T &b) {
    return a > b ? a : b;
}

APART void templates() {
    if (larger(amount, limit) == mode) // branch: amount|a, limit|b, mode
        out = 4;
}

APART void unique() {
    std::unique_ptr<Range> range(new Range{amount, limit});
    if (range->to > 3) // branch: to|limit
        out = range->from; // store: from|amount
}

int main() {
    dynamic_call(); references(); by_value(); captured(); from_vector(); caught(); standard_atomics(); guarded();
    templates(); unique();
}
