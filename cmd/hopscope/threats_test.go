package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// threatTests has the tests of each row of docs/threat-model.md, by section and first cell. An empty cell stands for the text of a
// section without a table; an empty list says that no test holds the row.
var threatTests = map[string]map[string]string{
	"Report datagrams (UDP)": {
		"any bytes":                                                    "decode/demux: FuzzDatagram FuzzFrame TestDatagramExtremes; decode/telemetry: FuzzReader; collector: TestRandomBytes",
		"from unlisted addresses":                                      "ingest/udp: TestAllowSources",
		"more than the machine can take":                               "ingest/udp: TestKernelDrops",
		"a collector with `afxdp` taken over":                          "ingest/afxdp: TestRights",
		"made-up flows":                                                "sketches: TestMemoryBudget TestOneHash TestPressureSparesWhatIsInUse; inference/shard: TestChosenKeys TestMemory",
		"made-up nodes, drops, path changes, faults":                   "inference/shard: TestOtherHops; inference/events: TestBounds",
		"a new name in every window":                                   "inference/window: TestAdmission TestAdmissionState",
		"a new exporter in every window":                               "inference/sequence: TestStrangers TestRecordsOfStrangers TestTrackerCrowded",
		"sequence numbers of an honest exporter, forged":               "inference/sequence: FuzzSequence TestTwoProcesses",
		"reports in another dialect, under the address of an exporter": "decode/guess: TestForgedBesideReadable TestGiveUp TestBurst",
		"what no dialect explains, from many addresses":                "decode/guess: TestManySenders FuzzJudge; collector/pipeline: TestDoubtsBounded",
		"forged PINT digests":                                          "inference/digest: TestStrangeDigests TestForget; inference/shard: TestDigestsOfEvictedFlows",
		"impossible values":                                            "inference/shard: TestMemory",
		"names and texts for the page and the stores":                  "sink/influx: FuzzAppendPoint TestSpecialCharacters; sink/web: FuzzFindingText TestHostileTexts",
		"causes of log lines":                                          "cmd/internal/cli: TestLogLimit TestLogLimitBounded",
	},
	"The control of probes": {
		"connections as an agent":        "p4/loop: TestServer TestServerRefuses TestReportAddresses",
		"commands":                       "p4/loop: TestAdmin",
		"answers of agents and switches": "p4/loop: TestLoopChecksPlans TestInstallers TestInstallersOfBrokenSwitch; planner/control: TestEpochsDoNotWrap",
		"findings, as the collector":     "",
		"flows, as the collector":        "p4/steer: TestAssignmentEntries TestAssignmentWaits FuzzAssignment",
		"rates of points, as a server":   "planner/delivery: TestMeasured; p4: TestDeliveredRefuses",
		"a changed journal":              "p4/loop: TestJournal",
	},
	"Probe agents": {
		"any frames":                         "p4/agent: TestFilter; p4/probe: TestParse FuzzParse",
		"made-up probes, with `digest_keys`": "p4/probe: TestDigest",
		"the same, without keys":             "p4/probe: TestOneFrame TestPlaces TestTrack",
		"requests to the STAMP reflector, with any source address":                      "p4/stamp: TestReflectorRefuses FuzzPackets; p4/agent: TestSTAMPHostile",
		"requests with made-up traces of IOAM (`stamp.reflector.ioam`, off by default)": "p4/stamp: TestReadIOAM FuzzIOAM",
		"made-up answers of STAMP":        "p4/stamp: TestSessionForged",
		"plans, as another server":        "p4/agent: TestStrangers",
		"plans, as the controller itself": "p4/probe: TestCheck; p4/agent: TestFollow FuzzPlan",
	},
	"Switches with P4Runtime": {
		"answers in the place of a switch":             "p4/p4rt: TestTLS",
		"gives impossible entries, errors or messages": "p4/p4rt: TestGarbage TestLies TestGreetings TestWriteGarbage FuzzDecode FuzzRefused",
		"confirms a write that it did not make":        "p4/p4rt: TestLies",
		"sends packets and digests without end":        "p4/p4rt: TestStreamMessages",
		"does not answer":                              "p4/p4rt: TestSlow TestSilent",
	},
	"Captures": {
		"": "collector: TestCaptureClockStrangeTimes",
	},
	"Kafka": {
		"reads the network":                                    "ingest/kafka: TestPlaintext TestLogin TestRenewedCertificate",
		"has a login on the brokers":                           "ingest/kafka: TestDenied",
		"writes invalid records to a topic":                    "inference/fleet: TestHead FuzzHead; inference/window: FuzzReadBinary TestReadBinaryMemory; decode/arrow: FuzzDecode TestCut",
		"writes a record again, or other bytes under its name": "",
		"writes a compression bomb":                            "sink/kafka: TestCompressedBatch",
		"writes windows far ahead, or their close":             "collector/fleet: TestFarAhead",
		"has the rights of a collector":                        "inference/window: TestMergeWithinLimits",
		"has the rights of a consumer":                         "",
		"writes to the topic `state`":                          "inference/events: TestStateRefused FuzzReadState; inference/window: TestAdmissionStateRefused FuzzAdmissionState; inference/shard: TestPathsRefused FuzzReadPaths",
		"writes to the topic `plans`":                          "ingest/kafka: TestFenced",
		"takes the brokers away":                               "sink: TestQueueSpoolOverflows; sink/spool: TestEviction",
		"knows the seed":                                       "sketches: TestOneHash",
	},
	"Stores": {
		"answers slowly, not at all, or with errors": "sink: TestQueueOutage TestQueueFull; sink/influx: TestServerGoneAndBack",
		"answers with long or strange data":          "sink/influx: TestLongAnswers TestAnswers",
		"refuses single points":                      "sink/influx: TestRefusedPoints TestSplitBudget; sink: TestRefusedBound",
	},
	"The page, the API and the metrics": {
		"has no login":                     "sink/web: TestToken TestLogin TestValidate; sink/web/access: TestRoles TestOpen",
		"guesses tokens":                   "sink/web/access: TestSlowDown TestAttemptsBounded",
		"sends the user header of a proxy": "sink/web/access: TestTrustedProxy",
		"lets a browser send requests under another name, or from another site": "sink/web: TestHostCheck TestMethods TestHeaders; sink/web/access: TestCSRF TestCORS",
		"has a role": "sink/web: TestEveryEndpointHasARole; sink/web/access: TestRoles",
		"forges, replays or redirects a login by OpenID Connect": "sink/web/access: TestOIDC TestOIDCRefused TestOIDCBounded",
		"writes to the files of tokens and changes":              "sink/web/access: TestDamagedTokens FuzzTokens FuzzChanges",
		"opens connections":               "sink/web: TestIdleConnectionsMakeRoom TestHalfHandshakesMakeRoom TestProbesHaveAReserve TestStreamLimit TestStreamSlowClient",
		"sends large or invalid requests": "sink/web: TestRequestLimits TestAPIRefuses",
	},
	"Disk": {
		"cut, flipped or foreign files in spools":      "sink/spool: TestCut TestFlippedBit TestStrangeFiles FuzzDirectory; sink: TestRefusedHostileFolder",
		"cut, flipped or made-up files in the history": "sink/history: TestDamage FuzzFile FuzzParts",
		"a full disk":                          "sink/spool: TestDiskFull TestDiskFullTmpfs",
		"two processes with one directory":     "sink/spool: TestLock",
		"a reader of the spool":                "",
		"a damaged file of exporters' numbers": "collector/windows: TestStateFile; inference/sequence: TestStateRefused",
	},
	"Settings, environment and signals": {
		"": "collector/settings: TestGuard FuzzLoad; cmd/hopscope: TestConfigCheck TestNotify",
	},
}

// Each row of the threat model has its entry here, with tests that are there, and each metric of it is one of the program.
func TestThreatModelHasTests(t *testing.T) {
	page := readText(t, "../../docs/threat-model.md")
	rows := map[string]bool{} // section, tab, first cell
	for section := range strings.SplitSeq(page, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		_, table, _ := strings.Cut(text, "\n| --- ")
		for line := range strings.Lines(table) {
			if cell, ok := strings.CutPrefix(line, "| "); ok && !strings.HasPrefix(cell, "---") {
				cell, _, _ = strings.Cut(cell, " |")
				rows[title+"\t"+cell] = true
				if _, ok := threatTests[title][cell]; !ok {
					t.Errorf("%s: the row %q has no entry in threatTests", title, cell)
				}
			}
		}
		if threatTests[title][""] != "" {
			rows[title+"\t"] = true
		}
	}
	for title, cells := range threatTests {
		for cell, tests := range cells {
			if !rows[title+"\t"+cell] {
				t.Errorf("%s: docs/threat-model.md has no row %q", title, cell)
			}
			for part := range strings.SplitSeq(tests, "; ") {
				if dir, names, ok := strings.Cut(part, ": "); ok {
					hasTests(t, dir, strings.Fields(names))
				} else if tests != "" {
					t.Errorf("%s: %s: %q names no package", title, cell, part)
				}
			}
		}
	}
	hasMetrics(t, page)
}

// Every test that the promises of the loop and of probes name is there, and every metric.
func TestPromisesNameTests(t *testing.T) {
	text := readText(t, "../../p4/loop/doc.go") + readText(t, "../../p4/probe/doc.go")
	named := regexp.MustCompile("`([a-z][a-z/0-9]*)`: ((?:`(?:Test|Fuzz)[A-Za-z0-9]+`(?:, )?)+)")
	found := 0
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		names := regexp.MustCompile(`\w+`).FindAllString(m[2], -1)
		found += len(names)
		hasTests(t, m[1], names)
	}
	if all := len(regexp.MustCompile("`(?:Test|Fuzz)[A-Z]").FindAllString(text, -1)); found < all-10 || found == 0 {
		t.Errorf("%d of %d tests were looked for", found, all)
	}
	hasMetrics(t, text)
}

// hasMetrics holds that the program has each metric that a text names.
func hasMetrics(t *testing.T, text string) {
	t.Helper()
	metrics := readText(t, "../../docs/metrics.md")
	for _, m := range regexp.MustCompile("`(hopscope_[a-z_]+[a-z])`").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(metrics, "`"+m[1]+"`") {
			t.Errorf("there is no metric %s", m[1])
		}
	}
}

// hasTests holds that a package has tests of these names.
func hasTests(t *testing.T, dir string, names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, f := range files {
		source.WriteString(readText(t, f))
	}
	for _, name := range names {
		if !strings.Contains(source.String(), "\nfunc "+name+"(") {
			t.Errorf("%s has no test %s", dir, name)
		}
	}
}
