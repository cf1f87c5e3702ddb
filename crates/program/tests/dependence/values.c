// Small functions whose branches and stores depend on known loads.
//
// `branch: a, b` and `store: a, b` name what must be found among the loads of the branches or stores that the compiler
// makes of that line. A compiler may also make none of it. `a|b` is for a load that a compiler may replace.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone))

int amount, limit, flag, total, count, other, out, mode, low, high, bits;
long big, wide;
unsigned long mask;
double rate, price;
long double precise;
__int128 huge_a, huge_b;
int table[64], indices[64];
char text[64];
unsigned char small_byte;
short small_word;

struct node { int key; int weight; struct node *next; struct node *down; };
struct node *list;
struct account { long owner; int balance; int locked; };
struct account accounts[8], saved;
pthread_mutex_t plain_lock, locks[8];
pthread_mutex_t *chosen_lock;
int which;
int (*handler)(int);
struct operations { int (*open)(int); int (*close)(int); };
struct operations *operations;

APART void arithmetic(void) {
    int sum = amount + limit;
    int twice = sum * 2 - other;
    if (twice > 10) // branch: amount, limit, other
        out = twice + count; // store: amount, limit, other, count
}

APART void tested_later(void) {
    int is_set = flag != 0;
    out = 0;
    total++; // store: total
    if (is_set) // branch: flag
        out = 1;
}

APART int loop(void) {
    int found = 0;
    for (int i = 0; i < count; i++) { // branch: count
        if (table[i] == amount) // branch: table|count, amount|count
            found += table[i];
    }
    out = found; // store: table
    return found;
}

APART void counted_up(void) {
    int steps = 0;
    for (struct node *at = list; at; at = at->next) // branch: list, next
        steps++;
    if (steps == 3) // branch: list, next
        out = 18;
    total = steps; // store: list, next
}

APART void counted_down(void) {
    int left = limit;
    while (left > 0) { // branch: limit
        left -= 3;
        total += left; // store: total, limit
    }
}

APART void ternary(void) {
    out = flag ? amount : limit; // store: flag, amount, limit
    int chosen = mode ? 4 : 9;
    if (chosen == other) // branch: mode, other
        count = 1;
}

APART void bounded_value(void) {
    int value = amount;
    value = value < low ? low : value;
    value = value > high ? high : value;
    out = value; // store: amount, low, high
}

APART void choose(void) {
    switch (mode) { // branch: mode
    case 0: out = amount; break; // store: amount
    case 1: out = limit; break; // store: limit
    case 2: out = total; break; // store: total
    case 3: out = count; break; // store: count
    case 4: out = other; break; // store: other
    case 5: out = flag; break; // store: flag
    default: out = 7;
    }
}

APART void looked_up(void) {
    static const int prices[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    if (prices[mode & 7] > limit) // branch: mode, limit
        out = 1;
}

APART void fields(struct account *from) {
    if (!from->locked) // branch: locked
        from->balance = from->balance - amount; // store: balance, amount
}

APART void indexed(void) {
    int slot = indices[which];
    table[slot] = amount; // store: indices, which, amount
    if (table[slot + 1] < limit) // branch: table, indices, which, limit
        out = 1;
}

APART int chase(void) {
    int sum = 0;
    for (struct node *at = list; at; at = at->next) { // branch: list, next
        if (at->down && at->down->key > limit) // branch: down, key, limit
            sum += at->weight;
    }
    total = sum; // store: weight
    return sum;
}

APART void spilled(void) {
    int a = amount, b = limit, c = other, d = count, e = low, f = high, g = bits, h = mode;
    int all = a * b + c * d - e * f + g * h;
    rand();
    int again = a + b + c + d + e + f + g + h;
    if (again < all) // branch: amount, limit, other, count, low, high, bits, mode
        out = again ^ all; // store: amount, limit, other, count, low, high, bits, mode
}

static APART int doubled(int value) {
    if (value > 100) // branch: amount, limit
        return 100;
    return value * 2;
}

APART void argument(void) {
    if (doubled(amount) > 5) // branch: amount
        out = doubled(limit); // store: limit
}

static APART int read_limit(void) {
    return limit + 1;
}

APART void result(void) {
    if (read_limit() > amount) // branch: limit, amount
        out = 3;
}

static APART int chosen_by_flag(void) {
    if (flag) // branch: flag
        return 1;
    return 2;
}

APART void result_by_branch(void) {
    int kind = chosen_by_flag();
    if (kind == mode) // branch: flag, mode
        out = 4;
}

static APART long many(long a, long b, long c, long d, long e, long f, long g, long h) {
    return a + b * c - d + e - f + (g > h); // store: big
}

APART void on_stack(void) {
    wide = many(1, 2, 3, 4, 5, 6, big, amount); // store: big, amount
}

static APART int depth(struct node *at, int so_far) {
    if (!at) // branch: list, next
        return so_far;
    return depth(at->next, so_far + at->weight) + at->key;
}

APART void recursive(void) {
    out = depth(list, amount); // store: list, next, weight, key, amount
}

static inline int inlined_difference(int a, int b) {
    return a > b ? a - b : b - a;
}

APART void inlined(void) {
    if (inlined_difference(amount, limit) > other) // branch: amount, limit, other
        out = 5;
}

APART int tail(void) {
    return doubled(amount);
}

APART void tail_result(void) {
    if (tail() == other) // branch: amount, other
        out = 6;
}

static APART void fill(int *to, struct account *from) {
    *to = from->balance + limit; // store: balance, limit
}

APART void address_taken(void) {
    int local = 0;
    fill(&local, &accounts[which]);
    if (local > 3) // branch: balance, limit
        out = local; // store: balance, limit
}

static APART int sum_of(const int *values, int length) {
    int sum = 0;
    for (int i = 0; i < length; i++)
        sum += values[i];
    return sum;
}

APART void local_array(void) {
    int values[4] = {amount, limit, other, count};
    if (sum_of(values, 4) > 10) // branch: amount, limit, other, count
        out = values[mode & 3]; // store: amount, limit, other, count
}

static APART int sum_back(const int *last, int length) {
    int sum = 0;
    while (length-- > 0)
        sum += *last--;
    return sum;
}

APART void from_the_end(void) {
    int values[4] = {amount, limit, other, count};
    if (sum_back(&values[3], mode) > 10) // branch: amount, limit, other, count
        out = 19;
}

APART void pointer_to_local(void) {
    int first = amount, second = limit;
    int *chosen = flag ? &first : &second;
    *chosen += other;
    if (first > second) // branch: amount, limit, other
        out = *chosen; // store: amount, limit, other
}

APART void copied(struct account *from) {
    struct account copy = *from;
    copy.balance += amount; // store: amount
    if (copy.locked) // branch: from
        saved = copy; // store: from
}

APART void copied_by_call(struct account *from) {
    struct account copy[3];
    memcpy(copy, from, sizeof copy);
    if (copy[1].balance > limit) // branch: from, limit
        out = copy[2].locked; // store: from
}

APART void bit_test(void) {
    if (bits & (1 << mode)) // branch: bits, mode
        out = 8;
    if (mask & 0x40) // branch: mask
        mask |= 1ul << count; // store: mask, count
}

APART void bytes(void) {
    unsigned char small = small_byte;
    if (small_word > small) // branch: small_word, small_byte
        small_byte = small + 1; // store: small_byte
}

APART void floats(void) {
    double cost = price * rate;
    if (cost > 10.0) // branch: price, rate
        price = cost - amount; // store: price, rate, amount
    if (precise > cost) // branch: precise, price, rate
        out = 9;
}

APART void wide_integers(void) {
    __int128 product = huge_a * huge_b;
    if (product > 1000) // branch: huge_a, huge_b
        huge_a = product + 1; // store: huge_a, huge_b
}

APART void strings(void) {
    char copy[64];
    memcpy(copy, text, sizeof copy);
    copy[3] = small_byte;
    if (copy[mode & 63] == 'x') // branch: text, small_byte
        out = 10;
    memset(table, amount, sizeof table); // store: amount
}

APART void vector(void) {
    for (int i = 0; i < 64; i++)
        table[i] = indices[i] * amount; // store: indices, amount
    if (table[1] > table[2]) // branch: table|indices
        out = 11;
}

APART void atomics(void) {
    int seen = __atomic_load_n(&flag, __ATOMIC_ACQUIRE);
    if (seen) // branch: flag
        __atomic_store_n(&out, amount, __ATOMIC_RELEASE); // store: amount
    int before = __atomic_fetch_add(&total, limit, __ATOMIC_SEQ_CST); // store: limit
    if (before > other) // branch: total, other
        count = before; // store: total
}

APART void compare_exchange(void) {
    int expected = low;
    if (__atomic_compare_exchange_n(&mode, &expected, high, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) // branch: mode, low
        out = 12;
    if (expected > limit) // branch: mode, low, limit
        out = 13;
}

APART void locked(void) {
    pthread_mutex_lock(&locks[which]); // lock: which
    int value = amount;
    pthread_mutex_unlock(&locks[which]); // lock: which
    pthread_mutex_lock(chosen_lock); // lock: chosen_lock
    if (pthread_mutex_trylock(&plain_lock) == 0) // branch: plain_lock
        out = value; // store: amount
}

APART void through_pointer(void) {
    if (handler(amount) > limit) // branch: limit; call: handler
        out = 14;
    operations->close(other); // call: operations
}

APART int early(void) {
    if (!flag) // branch: flag
        return 0;
    if (amount < low) // branch: amount, low
        return low;
    if (amount > high) // branch: amount, high
        return high;
    return amount;
}

APART void after_early(void) {
    total = early(); // store: low, high, amount
}

APART void short_circuit(void) {
    if (flag && (amount > limit || mode == other)) // branch: flag, amount, limit, mode, other
        out = 15;
    int both = low && high;
    if (both) // branch: low, high
        out = 16;
}

APART void allocated(void) {
    int values[count > 0 ? count : 1];
    for (int i = 0; i < count; i++) // branch: count
        values[i] = table[i] + amount;
    if (values[0] > limit) // branch: table, amount, limit
        out = values[0]; // store: table, amount
}

static APART void swap(int *a, int *b) {
    int kept = *a;
    *a = *b;
    *b = kept;
}

APART void swapped(void) {
    int first = amount, second = limit;
    swap(&first, &second);
    if (first == 3) // branch: limit
        out = second; // store: amount
}

struct pair { int *place; int value; };

static APART void apply(struct pair *pair) {
    *pair->place = pair->value; // store: value
}

APART void nested_address(void) {
    int local = amount;
    struct pair pair = {&local, limit};
    apply(&pair);
    if (local) // branch: amount, limit
        out = 17;
}

APART struct account returned_struct(void) {
    struct account made = {big, amount, flag};
    return made;
}

APART void uses_struct(void) {
    struct account made = returned_struct();
    if (made.locked) // branch: flag
        out = made.balance; // store: amount
}

int main(void) {
    arithmetic(); tested_later(); loop(); counted_up(); counted_down(); ternary(); bounded_value(); choose(); looked_up();
    fields(&accounts[which]); indexed(); chase(); spilled(); argument(); result(); result_by_branch(); on_stack();
    recursive(); inlined(); tail_result(); address_taken(); local_array(); from_the_end(); pointer_to_local(); copied(&accounts[1]);
    copied_by_call(accounts); bit_test(); bytes(); floats(); wide_integers(); strings(); vector(); atomics();
    compare_exchange(); locked(); through_pointer(); after_early(); short_circuit(); allocated(); swapped();
    nested_address(); uses_struct();
    return 0;
}
