// Package loop runs a controller of probes (planner/control). It passes time, suspects and answers to the controller.
// It carries out the actions at agents over gRPC, at switches, and in a journal.
//
// # Parts
//
//	Loop      the controller, its mailbox and the journal; one goroutine, or the calls of Step of a test on virtual time
//	Server    agents that follow over gRPC with mutual TLS
//	Rounds    which rounds of probes got lost, from what agents count; pure, fed by surveys of Server or Emulated
//	Emulated  agents of package emu in the same process
//	Installers  switches, each with a goroutine of its own, over P4Runtime or as files
//	Probing   turns plans of the controller into plans of agents
//	Journal   lines of JSON, synced before their actions are carried out
//	Admin     what an operator asks and says, over HTTP on loopback or a socket of the file system
//
// # Order
//
// Events wait in the mailbox. Each round passes all of them to the controller, in the order of arrival. Then it writes
// and syncs the records of the journal once, and hands over the actions. An action whose record could not be written is
// not handed over. The sides carry actions out beside the loop and post the outcomes.
//
// # Promises
//
// What holds beside the promises of planner/control, and its tests (the first one with 6 seeds, and 50 by night):
//
//	| event | what holds | test |
//	| --- | --- | --- |
//	| a line goes down, followed by: reload without a change, another plan, restart, kill during a change-over, kill of an agent, flipped bit in the journal, forged answer, full table, two agents with one address, silent agent | the line is suspected in every cycle until it is mended, and at most 40 s longer; no other direction for more than 3 cycles. 6 seeds, 50 at night | `p4/steer`: `TestAbsenceIsData` |
//	| no round of a probe ever comes | it is lost from the first round of a plan on | `p4/loop`: `TestRounds` |
//	| any single bit of the journal is flipped | that line alone is ignored, and named with its place | `p4/loop`: `TestJournalFlips` |
//	| the journal is of an earlier version | it is read, marked as unchecked, and continued | `p4/loop`: `TestJournalUnchecked` |
//	| the journal cannot be written | no device is blamed; in force stays what agents confirmed; the log names the end once, after a written record | `p4/loop`: `TestJournalFails` |
//	| the journal names an impossible epoch | plans go on, within an hour of cycles above the epochs of devices | `p4/loop`: `TestJournalEpoch` |
//	| 1,500 connections, 12,000 at night, show no certificate, at 1,024 descriptors | agents follow; a quarter of the descriptors stays free; memory grows by less than 64 MiB | `p4/loop`: `TestSilentConnections` |
//	| a switch refuses one, half or all of its entries, forgets, reads nothing, nonsense, everything twice or hundreds of foreign entries, hangs, is slow, answers with wrong errors, shows another cookie or program, restarts empty, ends its streams, loses entries, refuses to give one up, or has a second controller | journal and status match what it holds, metrics count entries in and out, its table follows from the journal alone, foreign entries stay, a healthy switch beside it is not written to again | `p4/steer`: `TestPeers` |
//	| a program is missing in a dry run, in a pause, or before its approval | it is not loaded, and the status names it | `p4/steer`: `TestLoadIsAnAct` |
//	| flows with assigned interfaces begin and end, a switch restarts, the control is killed, at rest and during a change | every packet has the values of its assigned interfaces and of no others; coverage, load and freshness of the reports equal the plan; unchanged entries are not written | `cmd/hopscope`: `TestControlInto` |
//	| a switch refuses a plan repeatedly | others are not written to after the first time; retries become rarer | `planner/control`: `TestRefusedAgain` |
//	| `budget_hops: 8` | at most 8 switches add a detailed block to probes | `planner/control`: `TestBudgetCountsTheLastSwitch` |
package loop
