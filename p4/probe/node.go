package probe

import "hash/crc32"

// agentNodes is the first node id of the space of agents, which no switch has.
const agentNodes = 0xf000_0000

// AgentNode is the node id of an agent of a name, in the space of agents.
func AgentNode(name string) uint32 {
	return agentNodes | crc32.Checksum([]byte(name), crc32.MakeTable(crc32.Castagnoli))>>4
}
