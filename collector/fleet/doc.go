// Package fleet consumes what the collectors of a fleet publish. It merges the windows of all of them, writes points
// to stores, and publishes the result. A [Consumer] is a member of a group. Each partition that the group assigns to
// it has a worker of its own:
//
//   - of topic windows: a slice of everything there is. The worker merges what the collectors saw of its hops and
//     exporters, writes their points, and publishes the merged slice in topic series.
//   - of topic series: there is one, and the consumer that has it is the owner. It puts the slices together, lets the detectors see the
//     window, and writes points of what needs all of it: flows, path changes, findings.
//
// # Exactly once
//
// The state of a worker is a function of the records that it has read. The worker keeps a checkpoint of that in topic
// state, with the offset from which to go on. It writes one only when every store and the brokers have confirmed all
// results of the records before. A consumer that takes a partition over goes on from the last checkpoint. From the
// later records it makes the same points and records as its predecessor. The points replace each other, and each
// record counts once. No result depends on which consumer was first. A consumer that does not know yet that it lost a
// partition therefore does no harm.
//
// # Promises
//
// These tests hold the promises of docs/fleet.md and docs/fleet-security.md. TestFleetLedger (cmd/hopscope) runs
// collectors, consumers and a console with a real broker and store: kills, unreadable records, retention, one name
// twice, clocks, stalls.
//
//	| promise | test |
//	| --- | --- |
//	| reports of killed collectors, in every order of records: once each, as stored or as `down` | `TestKilled`, `TestKilledLate` (inference/fleet), `TestBorder` (collector/pipeline), `TestStateGaps` (inference/sequence) |
//	| the ledger adds up, whatever the status of members | `TestLedger` (inference/fleet/roster), `TestBooks` (collector/fleet) |
//	| clocks, names, members that differ | `TestClockOff` (inference/fleet), `TestHold`, `TestMismatch` (sink/kafka) |
//	| the first close counts, windows close in order, patience, late records | `TestGateFirstCloseCounts`, `TestGateCloses`, `TestGateMissing` (inference/fleet), `TestLate` (collector/fleet) |
//	| the same points and records from any member | `TestKilledInWindow`, `TestRebalance`, `TestPausedPastSession` (collector/fleet), `TestZombie` (ingest/kafka) |
//	| outages of stores and of Kafka, a broker that does not answer | `TestStoreAway`, `TestSpoolsOneAfterTheOther` (collector/fleet), `TestAway`, `TestThirdOfPartitions` (sink/kafka) |
//	| single reports, and exporters at several collectors, as in one process | `TestRawReports` (collector/fleet), `TestCross` (inference/fleet/cross), `TestReplayIntoAFleet` (cmd/hopscope) |
//	| upgrades and back | `TestFormerOwner`, `TestBackAndForth` (collector/fleet) |
//	| one control is in charge | `TestTakeOver`, `TestFenced` (ingest/kafka), `TestControlFleet` (cmd/hopscope) |
//	| the page, limits, ACLs | `TestConsole` (cmd/hopscope), `TestConsumerCrowded` (collector/fleet), `TestACLs` (sink/kafka) |
//	| TLS, certificates, logins, renewals; errors name what to change and no secret | `TestLogin`, `TestPlaintext`, `TestRenewedCertificate`, `TestDenied` (ingest/kafka) |
//	| unsafe settings are reported | `TestValidate`, `TestCheckFiles` (ingest/kafka), `TestConfigCheck` (cmd/hopscope) |
//	| the ACLs suffice, and each is needed | `TestACLs` (sink/kafka) |
//	| foreign and damaged records cost nothing | `TestFleetLedger/stranger`, `TestFleetLedger/poison` (cmd/hopscope), `TestPoisoned` (collector/fleet) |
//	| names, statuses and the mark of the seed | `TestHold` (sink/kafka), `TestMember`, `TestMemberRefused`, `TestParams` (inference/fleet/roster) |
package fleet
