/*
 * Two hash sets, each behind its lock, and two threads that add each set to the
 * other. The bug, opposite orders of two locks, and its fix are described in
 * exchange_driver.h.
 */
#include "hash_elements.h"

#include "exchange_driver.h"
