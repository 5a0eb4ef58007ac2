package main

// target is a package with the functions that are mutated and the tests that are run against each mutant.
type target struct {
	pkg    string // pattern of the go command
	funcs  string // regular expression over the names of functions, and Type.method of methods
	run    string // regular expression of -test.run
	others string // further packages whose tests are run, separated by spaces
}

// targets are the functions on which everything else rests. They are checks of plans, sequence numbers, sketches,
// causes, spool and the closing of a fleet's windows. Others are the ledger, the control of probes, and the counts of
// STAMP.
var targets = []target{
	{"./planner", `Check|Walk|Errors\..*|Near`, `TestCheck|TestErrors|TestFamilies|TestCorruptions|TestInvalid`, ""},
	{"./planner/attention", `Check.*|Problem\.reachable|nameSet`, `TestCheck|TestWalks|TestInvalid|TestFamilies/attention|TestCorruptions/attention`, "./planner"},
	{"./planner/cover", `.*[cC]heck.*|Walks|valid|Problem\.(items|objective|leftOut|coveredBy)`, `TestCheck|TestWalks|TestInvalid|TestFamilies/cover|TestCorruptions/cover`, "./planner"},
	{"./planner/delivery", `Check.*|deliveryCheck\..*|overloads`, `TestCheck|TestWalks|TestInvalid|TestFamilies/delivery|TestCorruptions/delivery`, "./planner"},
	{"./planner/orchestrate", `Check.*|check.*|readShares`, `TestCheck|TestWalks|TestInvalid|TestFamilies/orchestrate|TestCorruptions/orchestrate`, "./planner"},
	{"./planner/querymix", `Check.*|check.*|hashName|PlannedQuery\.floor|Plan\.priceBound`, `TestCheck|TestWalks|TestInvalid|TestFamilies/quer|TestCorruptions/quer`, "./planner"},
	{"./planner/schedule", `Check.*|check.*|readTimes`, `TestCheck|TestWalks|TestInvalid|TestFamilies/schedule|TestCorruptions/schedule`, "./planner"},
	{"./planner/control", `(Controller|device|keep|Plan|Network|asked)\..*|rested|changes|with|without|same|ranked|elements|urgent|needed|afterSteps|union|sameList`, `Test[^EBROC]|TestRef|TestBudget|TestCap|TestOper`, ""},
	// Without Config.Memory and Config.NumbersMemory, which size what is taken and change nothing.
	{"./inference/sequence", `[^C].*|Config\.[^MN].*`, `Test[^CSW] TestCopies$ TestCopiesAllocate TestConfig TestS[it] TestSequence$ TestWait`, ""},
	{"./inference/cause", `(Grouper|Alone|problem|savings)\..*|Cause\.(saves|later|show|updateEvidence|count|rests)|both|tidy|between|byElement|addHops`, `Test[^RS]|TestS[^t]`, ""},
	{"./inference/fleet", `(Gate|openWindow|pastWindow|Closing|collector|delivery|pseudo|entry)\..*|missed|compareSources|isPseudo`, `Gate|States|FetchFails|Unheard|Refuses|KilledLate|Budget|AssemblerSilence|Version1|ClocksApart|Fuzz(Log|State)`, ""},
	{"./sketches/quantile", `.*`, `Test`, ""},
	{"./sketches/quantile", `(Tiny|Rand)\..*|halve|place|merge|sort16|order|sortSmall|strided`, `Test[^BT]|TestTiny[^E]|TestTinyE[mx]|TestTwin`, ""},
	{"./sink/spool", `Spool\.(append|Append|limit|seal|resave|evict|Room|dropStored|locate|read|skip|Commit|advance)|totals\..*|parse.*|slotAt|readSlots`,
		`Test([^CFSK]|Counts|Config|Files|Stored|Sync|Str|KeptIn)`, ""},
	{"./collector/ledger", `.*`, `.`, ""},
	{"./p4/stamp", `Session\..*|Reflector\..*|Keys\..*|numbers\..*|locate|address`, `Test([^LRTW]|Ref|Tim)`, ""},
}
