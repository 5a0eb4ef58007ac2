package scenario

// GearStories are what happens in a network, by the protocol that its devices send.
var GearStories = map[string]string{
	"sFlow": `a port congests and discards packets, a list of
  rules drops some, a port receives damaged ones, an agent falls silent, and it all
  recovers. There are no paths, and latencies only where samples hold them.`,
	"IPFIX": `a router drops packets, another one does with
  another exception code, one falls silent, and it all recovers. There are no paths,
  no latencies and no use of interfaces.`,
}

// GearLooks are the commands that show most of it.
var GearLooks = map[string]string{"sFlow": "top --interfaces", "IPFIX": "find et-0/0/1"}

// PlainStory is what happens in a network without telemetry.
const PlainStory = `a link loses one packet of twenty, another
  fails and flows go around it, a third delays packets, a host is off, and it all
  recovers. Only probes show it: see Probes on the page.`
