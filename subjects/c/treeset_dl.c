/*
 * Two ordered trees, each behind its lock, and two threads that add each tree
 * to the other. The bug, opposite orders of two locks, and its fix are
 * described in exchange_driver.h.
 */
#include "tree_elements.h"

#include "exchange_driver.h"
