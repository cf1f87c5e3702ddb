/*
 * Two doubly linked lists, each behind its lock, and two threads that add each
 * list to the other. The bug, opposite orders of two locks, and its fix are
 * described in exchange_driver.h.
 */
#include "linked_elements.h"

#include "exchange_driver.h"
