package p4

import (
	"embed"
	"fmt"
)

//go:embed bmv2/*.json bmv2/*.p4info.txtpb
var compiledFiles embed.FS

// Programs are the names of the compiled programs.
var Programs = []string{"srint", "intmd", "into", "pint", "rft", "hopscope"}

// Compiled returns the description of a program for a controller, and the file that BMv2 loads.
func Compiled(program string) (info, device []byte, err error) {
	if info, err = compiledFiles.ReadFile("bmv2/" + program + ".p4info.txtpb"); err == nil {
		device, err = compiledFiles.ReadFile("bmv2/" + program + ".json")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("program %q: there are %v", program, Programs)
	}
	return info, device, nil
}

// TableOrder returns the tables of a program that make the entries of others take effect. They are written after all
// others, one after the other, and emptied in the opposite order. A switch carries out a plan of PINT as soon as
// egress.plan has its epoch, and sources stamp it when ingress.watch has it.
func TableOrder(program string) []string {
	switch program {
	case "intmd":
		return []string{"egress.envelope.collector", "ingress.drops", "egress.queues", "egress.egress_port", "ingress.watch"}
	case "into":
		return append(TableOrder("intmd"), AssignedName)
	case "rft":
		return append([]string{PathsName}, append(TableOrder("into"), ShareName)...)
	case "hopscope":
		return []string{"egress.envelope.collector", "ingress.drops", "egress.queues", "egress.loops", "egress.egress_port", "egress.plan",
			"ingress.forward.forwarding4", "ingress.forward.forwarding6", "ingress.watch", "ingress.pint_watch", AssignedName, CollectorsName, GeneratorsName}
	case "pint":
		return []string{"egress.envelope.collector", "egress.egress_port", "egress.plan", "ingress.watch"}
	}
	return nil
}
