/* le-s without leaders that expire: the kernel of hustings/fast/race.py once more, in C.
 *
 * The same algorithm, the same coins, the same rows, bit for bit; the bench compares them before it
 * times anything. Only what the workload needs: ids decide, timers are uniform, losses independent.
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NEVER (INT64_C(1) << 62)
#define STEP UINT64_C(0x9E3779B97F4A7C15)
#define FIRST UINT64_C(0xBF58476D1CE4E5B9)
#define SECOND UINT64_C(0x94D049BB133111EB)
#define BRANCH UINT64_C(0xD1B54A32D192ED03)
#define MESSAGE (UINT64_C(1) << 63)
#define UNIT 0x1p-53

enum {
    TMAX, COMPLETE, NUM_MSGS, SENT_BY_TMAX, FIRST_ROUND, ROUNDS, HEARD, MESSAGES,
    FIRST_ROUND_TIME, LEADING, LEADING_MOST, LEADER, WATCHED, CUT, COLUMNS
};

typedef struct {
    int64_t now, sent, before, arrived, landed, firsts, firsts_before, leading, most, area;
    int64_t last_first, heard, round, repeat, runners, deaf, woken, wake;
    int64_t sent_at, arrived_at, landed_at, repeat_at;
} Counters;

typedef struct {
    int64_t n, room, T_A, D, max_rounds;
    double longest;
    uint64_t bar;
    int32_t *spoken, *out, *order, *runner, *unheard; /* by member, and three lists of them */
    double *chances;
    int64_t *at; /* of messages: when sent, by whom, its how manieth, how many others under way */
    int32_t *who, *number, *beside;
} Group;

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * FIRST;
    x = (x ^ (x >> 27)) * SECOND;
    return x ^ (x >> 31);
}

static inline uint64_t word(uint64_t key, uint64_t index)
{
    return mix(key + (index + 1) * STEP);
}

static inline uint64_t branch(uint64_t key, uint64_t index)
{
    return mix(word(key, index) ^ BRANCH);
}

static inline int32_t below(uint64_t key, int32_t index, uint64_t bar)
{
    return (word(key, (uint64_t)(int64_t)index) >> 11) < bar;
}

static void sort_sleepers(uint64_t run, Group *g)
{
    int64_t n = g->n;
    int32_t *order = g->order, *boxes = g->unheard;
    double *chances = g->chances;
    uint64_t key = branch(run, 0);
    for (int64_t member = 0; member < n; member++) {
        chances[member] = (double)(word(key, (uint64_t)member) >> 11) * UNIT;
        boxes[member] = 0;
    }
    for (int64_t member = 0; member < n; member++) {
        int64_t box = (int64_t)(chances[member] * (double)n);
        boxes[box < n - 1 ? box : n - 1]++;
    }
    int32_t below_it = 0;
    for (int64_t box = 0; box < n; box++) {
        below_it += boxes[box];
        boxes[box] = below_it;
    }
    for (int64_t member = n - 1; member >= 0; member--) {
        int64_t box = (int64_t)(chances[member] * (double)n);
        order[--boxes[box < n - 1 ? box : n - 1]] = (int32_t)member;
    }
    for (int64_t k = 1; k < n; k++) {
        int64_t place = k;
        int32_t member = order[place];
        double chance = chances[member];
        while (place > 0 && chances[order[place - 1]] > chance) {
            order[place] = order[place - 1];
            place--;
        }
        order[place] = member;
    }
}

static void begin(Counters *c, Group *g)
{
    memset(c, 0, sizeof *c);
    c->now = -1;
    c->runners = g->n;
    c->deaf = g->n - 1;
    for (int64_t member = 0; member < g->n; member++) {
        g->spoken[member] = g->out[member] = 0;
        g->runner[member] = g->unheard[member] = (int32_t)member;
    }
}

static inline void tick(Counters *c, int64_t now)
{
    if (c->now != now) {
        c->now = now;
        c->before = c->sent;
        c->firsts_before = c->firsts;
    }
}

static inline void defer(Counters *c, int64_t members)
{
    c->area += members * c->now;
    c->leading -= members;
}

static inline void step(int64_t *count, int64_t *place, int64_t room)
{
    ++*count;
    if (++*place == room)
        *place = 0;
}

static inline void wake_next(Counters *c, Group *g)
{
    while (c->woken < g->n && g->out[g->order[c->woken]])
        c->woken++;
    c->wake = NEVER;
    if (c->woken < g->n)
        c->wake = (int64_t)rint(g->longest * g->chances[g->order[c->woken]]);
}

static inline int64_t send(Counters *c, Group *g, int32_t who)
{
    while (c->landed < c->sent && g->at[c->landed_at] <= c->now - g->D)
        step(&c->landed, &c->landed_at, g->room);
    int32_t number = ++g->spoken[who];
    if (number == 1) {
        c->firsts++;
        c->last_first = c->now;
        c->area -= c->now;
        c->leading++;
        if (c->most < c->leading)
            c->most = c->leading;
    }
    int64_t place = c->sent_at;
    g->at[place] = c->now;
    g->who[place] = who;
    g->number[place] = number;
    g->beside[place] = (int32_t)(c->sent - c->landed);
    step(&c->sent, &c->sent_at, g->room);
    return number;
}

static inline void hear_leader(Counters *c, Group *g, uint64_t key, int64_t number)
{
    int32_t *unheard = g->unheard, *out = g->out;
    int64_t before = c->deaf, left = 0;
    for (int64_t place = 0; place < before; place++) {
        int32_t member = unheard[place];
        int32_t lost = below(key, member, g->bar);
        out[member] |= !lost;
        unheard[left] = member;
        left += lost;
    }
    if (left < before) {
        c->deaf = left;
        c->heard += number * (before - left);
        c->round = number;
    }
}

static inline void drop(Counters *c, Group *g)
{
    int32_t *runners = g->runner;
    int64_t left = 0, quiet = 0;
    for (int64_t place = 0; place < c->runners; place++) {
        int32_t member = runners[place], gone = g->out[member];
        quiet += gone & (g->spoken[member] > 0);
        runners[left] = member;
        left += 1 - gone;
    }
    c->runners = left;
    defer(c, quiet);
}

static inline void sift(Counters *c, Group *g, uint64_t key, int32_t worth)
{
    int32_t *runners = g->runner;
    int64_t end = c->runners, worse = 0, high = end, left = 0, quiet = 0;
    while (worse < high) {
        int64_t middle = (worse + high) >> 1;
        if (runners[middle] < worth)
            worse = middle + 1;
        else
            high = middle;
    }
    for (int64_t place = 0; place < worse; place++) {
        int32_t member = runners[place], gone = 1 - below(key, member, g->bar);
        g->out[member] = gone;
        quiet += gone & (g->spoken[member] > 0);
        runners[left] = member;
        left += 1 - gone;
    }
    if (left == worse)
        return;
    for (int64_t better = worse; better < end; better++)
        runners[left++] = runners[better];
    c->runners = left;
    defer(c, quiet);
}

static inline void arrive(Counters *c, Group *g, uint64_t run)
{
    int64_t place = c->arrived_at, at = g->at[place], count = 0;
    while (c->arrived < c->sent && g->at[c->arrived_at] == at) {
        step(&c->arrived, &c->arrived_at, g->room);
        count++;
    }
    while (count-- > 0) {
        int64_t spot = place + count;
        if (spot >= g->room)
            spot -= g->room;
        uint64_t who = (uint64_t)g->who[spot], number = (uint64_t)g->number[spot];
        uint64_t key = branch(run, MESSAGE | who << 32 | number);
        if ((int64_t)who == g->n - 1) {
            hear_leader(c, g, key, (int64_t)number);
            drop(c, g);
        } else {
            sift(c, g, key, (int32_t)who);
        }
    }
}

static void play_run(Counters *c, Group *g, uint64_t run)
{
    wake_next(c, g);
    while (c->deaf) {
        if (c->woken < g->n && g->out[g->order[c->woken]])
            wake_next(c, g);
        while (c->repeat < c->sent && g->out[g->who[c->repeat_at]])
            step(&c->repeat, &c->repeat_at, g->room);
        int64_t again = c->repeat < c->sent ? g->at[c->repeat_at] + g->T_A : NEVER;
        int64_t arrival = c->arrived < c->sent ? g->at[c->arrived_at] + g->D : NEVER;
        int32_t who;
        if (c->wake > arrival && again > arrival) {
            tick(c, arrival);
            arrive(c, g, run);
            continue;
        }
        if (c->wake <= again) {
            tick(c, c->wake);
            who = g->order[c->woken++];
            wake_next(c, g);
        } else {
            tick(c, again);
            who = g->who[c->repeat_at];
            step(&c->repeat, &c->repeat_at, g->room);
        }
        if (send(c, g, who) > g->max_rounds)
            return;
    }
}

static void report(const Counters *c, const Group *g, double *row)
{
    row[TMAX] = (double)(c->now - g->D);
    row[COMPLETE] = row[WATCHED] = (double)c->now;
    row[NUM_MSGS] = (double)(g->D ? c->before : c->sent);
    row[FIRST_ROUND] = (double)(g->D ? c->firsts_before : c->firsts);
    row[SENT_BY_TMAX] = (double)c->arrived;
    row[ROUNDS] = (double)c->round;
    row[HEARD] = (double)c->heard;
    row[MESSAGES] = (double)c->sent;
    row[FIRST_ROUND_TIME] = (double)c->last_first;
    row[LEADING] = (double)(c->area + c->leading * c->now);
    row[LEADING_MOST] = (double)c->most;
    row[LEADER] = (double)g->n;
}

/* Runs first .. first + runs - 1, a row each; 0, or 1 where there is no memory. */
int le_s(uint64_t seed, int64_t first, int64_t runs, int64_t n, double longest, int64_t T_A,
         int64_t D, uint64_t bar, int64_t max_rounds, double *rows)
{
    Group g = {.n = n, .room = n * (D / T_A + 1), .T_A = T_A, .D = D, .max_rounds = max_rounds,
               .longest = longest, .bar = bar};
    int32_t *shorts = calloc((size_t)(5 * n + 3 * g.room), sizeof *shorts);
    int64_t *longs = calloc((size_t)(n + g.room), sizeof *longs);
    if (shorts == NULL || longs == NULL) {
        free(shorts);
        free(longs);
        return 1;
    }
    g.spoken = shorts, g.out = shorts + n, g.order = shorts + 2 * n, g.runner = shorts + 3 * n;
    g.unheard = shorts + 4 * n, g.who = shorts + 5 * n;
    g.number = g.who + g.room, g.beside = g.number + g.room;
    g.chances = (double *)longs, g.at = longs + n;
    for (int64_t number = 0; number < runs; number++) {
        Counters c;
        uint64_t run = branch(seed, (uint64_t)(first + number));
        sort_sleepers(run, &g);
        begin(&c, &g);
        play_run(&c, &g, run);
        if (c.deaf)
            rows[number * COLUMNS + CUT] = 1.0;
        else
            report(&c, &g, rows + number * COLUMNS);
    }
    free(shorts);
    free(longs);
    return 0;
}
