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
//
// # Order
//
// Insertions come before deletions. A request has updates of one level, since a switch may execute them in any order.
// Deletions are in reverse. The levels are:
//
//   - intmd.p4: clone sessions; all other tables; collector; drops; queues; egress_port; ingress.watch.
//   - into.p4: as intmd.p4, then egress.assigned.
//   - pint.p4: clone sessions; all other tables; collector; egress_port; egress.plan; ingress.watch. So a plan is stamped
//     last.
//
// Errors are by update. After a refusal no later level is tried. Updates of a request without an answer are unknown, and
// reported, until read back. Answers are refused whole (answerError) if entries do not fit their table, repeat, were
// not requested, or exceed a million. So are answers with a wrong number of errors.
//
// Numbers are sent as short as possible and accepted in any length; fields that match everything are omitted.
//
// # BMv2
//
// Tests run against an emulated server that misbehaves on demand; with the tag bmv2 the same client runs against
// simple_switch_grpc. BMv2 1.15 deviates from the specification, or from simple_switch_CLI:
//
//   - VERIFY_AND_COMMIT, VERIFY_AND_SAVE and RECONCILE_AND_COMMIT of another program empty tables and clone sessions.
//     COOKIE_ONLY is ignored: the answer has the whole program, 160 to 390 KB, every 10 s.
//   - The priority of ternary and range keys is above 0, the greatest first (in the CLI the least). The same key with
//     another priority is another entry.
//   - Fields that match everything are left out: a mask of 0 and bits outside of a mask or prefix are refused.
//   - Default actions have MODIFY only; without an action it is the program's again. They are read by is_default_action.
//   - Clone sessions are 1 to 32767, with a port that is not 0. packet_length_bytes is refused.
//   - A full table, and one with constant entries, give UNKNOWN and "Error when adding match entry to target"; the client
//     then counts the entries. Details have an error for each update. ROLLBACK_ON_ERROR and DATAPLANE_ATOMIC are missing,
//     hence the levels.
//   - Writes of others than the primary are PERMISSION_DENIED; a second stream with the same id ends with
//     INVALID_ARGUMENT. Roles are ignored.
//   - An unknown device id is another device without a program. Registers can be neither read nor written. Numbers with
//     leading zeros are accepted, and read back short.
package p4rt
