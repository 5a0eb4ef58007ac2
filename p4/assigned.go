package p4

// Names of into.p4, in which the interfaces of a switch add their values to packets of the flows that are assigned to
// them. AssignedDomain is the domain of such INT.
const (
	AssignedName   = "egress.assigned"
	CarryAction    = "carry"
	ExtractAction  = "extract"
	AssignedDomain = 0x1470
)

// Assigns reports whether a program has the table of assignments.
func Assigns(program string) bool {
	return program == "into" || program == "rft" || program == "hopscope"
}

// AssignedTable is the table of into.p4 that intmd.p4 lacks. A key is a flow and the port by which its packets leave. The
// action carry adds the values of the interface, extract also takes INT out and reports it. The first parameter of both is
// the bitmap, followed by clone session and collector of the report.
func AssignedTable() Table {
	exact := func(name string, bits int) Field { return Field{Name: name, Bits: bits} }
	param := func(name string, bits int) Param { return Param{Name: name, Bits: bits} }
	return Table{
		Name: AssignedName, Size: 4096,
		Key: []Field{exact("meta.src", 128), exact("meta.dst", 128), exact("meta.proto", 8), exact("meta.src_port", 16), exact("meta.dst_port", 16), exact("standard_metadata.egress_port", 9)},
		Actions: []Action{
			{Name: CarryAction, Params: []Param{param("bitmap", 16)}},
			{Name: ExtractAction, Params: []Param{param("bitmap", 16), param("clone_session", 32), param("collector", 8)}},
			{Name: "NoAction"},
		},
	}
}
