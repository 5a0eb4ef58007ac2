// Package p4rt writes the tables of switches and reads them back. It uses P4Runtime 1.4 where switches serve it, or
// plain JSON for programs that install entries by other means. Both are an [Installer], whose entries are those of
// package p4.
//
// A [Client] is a controller of one switch. It takes part in the election of its primary, detects any pipeline but its
// own, and reconnects with increasing delays. Every answer of the switch is bounded and checked before use; an invalid
// one is an answerError.
//
// The function [Reconcile] makes a switch hold what it should. It reads before it writes, keeps correct entries,
// repairs the others, and deletes the controller's own entries that are no longer wanted. It leaves the entries of
// others, and reads again to verify the result.
package p4rt
