package docs

import "strings"

// Group is a part of the documentation, by what its readers want.
type Group struct {
	Name, About string
	Pages       []string // names, as [Page] takes them
}

// Pages are all pages that the program holds, each in one group, in the order in which they are read.
var Pages = []Group{
	{"Start", "From nothing to the first hop on the page, by kind of gear.", []string{
		"getting-started/linux-hosts", "getting-started/bmv2-and-tofino", "getting-started/sonic", "getting-started/sflow", "getting-started/arista",
		"getting-started/broadcom", "getting-started/cumulus", "getting-started/juniper",
	}},
	{"How to", "What an operator does.", []string{
		"install", "sizing", "operating", "access", "findings", "alerts", "inventory", "map", "agent", "loop", "fleet", "fleet-security", "harness",
	}},
	{"Reference", "What there is, to look up.", []string{
		"configuration", "agent-settings", "control-settings", "api", "metrics", "series", "jsonl", "reports-arrow", "formats", "p4", "plans",
		"plan-cover", "plan-attention", "plan-orchestrate", "plan-delivery", "plan-queries", "plan-schedule", "examples/README", "glossary",
	}},
	{"Explanation", "How it works, why, and what was measured.", []string{
		"architecture", "reliability", "performance", "threat-model", "pint", "papers", "peers",
	}},
}

// Title is the heading of a page.
func Title(page string) string {
	text, _ := Page(page)
	title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	return title
}
