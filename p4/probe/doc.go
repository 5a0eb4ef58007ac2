// Package probe holds the probes of agents for all that send, receive, plan or emulate them: plans, frames, and the
// rounds that arrived. Every part but the readers of files is pure: time is an argument, and bytes come from the caller.
//
//	Plan       which probes, on which route, when, and with which instructions; Check refuses what an agent must not send
//	Files      plans of "hopscope plan" as the plan of an agent
//	Work       the probes that one agent sends by a plan: their slots and templates
//	Timetable  what is due next
//	Template   the frame of a probe, of which only number, round and time change
//	Parser     reads what comes back; bounded, allocates nothing
//	Track      follows rounds: which came, which are lost, and which no plan has
//	Outcomes   what became of the probes of each path of a plan, for collectors
//	Groups     reports 2.0 about what came
//	Rounds     the counts of an agent, for its controller
//	Seal       the file from which an agent takes its plan without a controller
//	Times      durations by size, for metrics
//
// # A probe on the wire
//
// It is a source-routed frame as INT-Probe has it (decode/srint), whose route leads an ordinary IPv4 packet with INT-MD 2.1
// (decode/intmd):
//
//	dst 6 | src 6 | 0x0700 | route 2 + 2n | 0x0800 | IPv4 20 | UDP 8 | INT shim 4, header 12, stack | payload 24
//
// A switch takes the first entry off the route and sends the probe by its port. It pushes its block on the stack as any
// transit node of INT does. With the last entry the route header goes, so that the receiving host gets IPv4. The sender
// writes the instruction bitmap. For more detail on a part of the network, the agent sends other headers, and no switch
// is written.
//
//   - UDP goes to intPort, which marks INT; the shim has NPT 1 and the original port probePort. Switches adjust the
//     checksum or set it to 0. It is 0 from the start if they do neither (Ends.Checksum).
//   - The source port is 49152 and the lower 14 bits of the probe's number. A probe is a flow of its own, and a path of its own.
//   - The bit D of the INT header says that the sink node discards the packet.
//   - All probes carry the agent's mark as their DSCP. A switch that leaves marked packets out of its counters does not measure
//     the load of its probes; docs/agent.md says where.
//
// The payload is 24 bytes: "HPRB", number 4, epoch of the plan 4, round 4, time of sending 8 (ns since 1970). With digests,
// number of the key 4 and digest 8 follow.
//
// # Promises
//
// What agents promise of the probes of a plan, and its tests; those of package agent and TestAgent use a pair of interfaces:
//
//	| event | what holds | test |
//	| --- | --- | --- |
//	| no round of a probe ever comes, for 1,500 rounds | `lost` grows from the plan's first round on, the probe is silent, `agent status` ends with status 1 | `p4/probe`: `TestAbsence`; `p4/agent`: `TestSilence` |
//	| a probe stops coming | it is silent after two rounds and a second | `p4/probe`: `TestAbsence`; `p4/agent`: `TestSilence` |
//	| a collector has only reports of agents whose probes are gone | it gets a report for each lost round (at most 64 a probe and second), and has a finding | `p4/agent`: `TestMissingReports`; `cmd/hopscope`: `TestAgent` |
//	| a third of the rounds, or a random share, is missing | exactly these rounds are lost | `p4/probe`: `TestAbsence`, `TestOutage` |
//	| the sender disappears, and returns with a later plan | the rounds of its schedule stay lost | `p4/probe`: `TestAbsence` |
//	| the plan is reloaded | silent probes stay silent, and losses stay lost | `p4/probe`: `TestAbsence` |
//	| the agent stands still for an hour | nothing is lost by that | `p4/probe`: `TestAbsence` |
//	| the agent's own line goes down | not ready; one line in the log; unsent probes are no loss | `p4/agent`: `TestLineDown`; `p4/probe`: `TestOwnLine` |
//	| the agent's port is up and does not take probes | not ready, with the kernel's reason; reported as unsent; accuses no link, and the status of the control names the agent | `p4/agent`: `TestPortRefuses`; `p4/loop`: `TestUnsent` |
//	| 800 connections to the agent's status are silent, or send half a request | checks and metrics are answered; at most 80 are open; closed ones are counted | `p4/agent`: `TestSilentConnections` |
//	| one frame with any bit of epoch, round or time changed, or with 60,000 rounds more | it causes no loss, and later losses are counted | `p4/probe`: `TestOneFrame` |
//	| 4,200 made-up probes before the honest ones | all probes of the plan have their places, and their losses are counted | `p4/probe`: `TestPlaces` |
//	| any bit of a packet is changed | the frame is corrupt, and not taken | `p4/probe`: `TestFlips` |
//	| one bit of 1 % of the frames is changed | 0 lost, no other path, as many corrupt as were changed | `p4/probe`: `TestFlippedOneOfAHundred`; `p4/agent`: `TestFlippedOnTheLine` |
//	| a probe is forged with right checksums, or a key is replaced | its digest refuses it, and no honest probe | `p4/probe`: `TestDigest` |
//	| an agent with a valid certificate claims another's address | its counts are refused, and it is named | `p4/loop`: `TestReportAddresses` |
package probe
