package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/hopscope/hopscope/inference/fleet/roster"
	brokers "github.com/hopscope/hopscope/ingest/kafka"
	"github.com/hopscope/hopscope/ingest/retry"
)

// topic is the required form of a topic.
type topic struct {
	name       string // with the prefix
	partitions int
	compact    bool
	retention  time.Duration // of one that is not compacted
	message    int           // least max.message.bytes
	optional   bool          // a fleet works without it, but for what it is for
}

// messageRoom is by how much a record may be longer than its value: its head names all collectors and exporters of a
// slice.
const messageRoom = 1 << 18

// topics are those of the fleet.
func (c *Config) topics() []topic {
	message := max(c.MaxMessageBytes+messageRoom, 1<<20)
	return []topic{
		{c.Topic(brokers.Windows), c.Slices, false, c.Topics.WindowsRetention, message, false},
		{c.Topic(brokers.Reports), c.Slices, false, c.Topics.ReportsRetention, message, false},
		{c.Topic(brokers.Series), 1, false, c.Topics.SeriesRetention, message, false},
		{c.Topic(brokers.State), 2*c.Slices + 1, true, 0, message, false},
		{c.Topic(brokers.Roster), 1, true, 0, message, false},
		{c.Topic(brokers.Plans), 1, true, 0, message, true}, // fleets of earlier versions have none
	}
}

// uncompressed is the topic's setting for how brokers keep batches. This program compresses values itself, and bounds
// them when it reads them. A reader would unpack a batch compressed by its producer before it knows the size. So the
// brokers unpack it instead, and refuse it if it is then longer than max.message.bytes.
const uncompressed = "uncompressed"

// settings are what the topic is created with. Times are the brokers', since the clocks of collectors may be wrong.
func (t *topic) settings() []kafka.ConfigEntry {
	list := []kafka.ConfigEntry{
		{ConfigName: "message.timestamp.type", ConfigValue: "LogAppendTime"},
		{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(t.message)},
		{ConfigName: "compression.type", ConfigValue: uncompressed},
	}
	if t.compact {
		return append(list,
			kafka.ConfigEntry{ConfigName: "cleanup.policy", ConfigValue: "compact"},
			kafka.ConfigEntry{ConfigName: "segment.ms", ConfigValue: millis(time.Hour)})
	}
	return append(list,
		kafka.ConfigEntry{ConfigName: "cleanup.policy", ConfigValue: "delete"},
		kafka.ConfigEntry{ConfigName: "retention.ms", ConfigValue: millis(t.retention)},
		// What is older goes by whole segments.
		kafka.ConfigEntry{ConfigName: "segment.ms", ConfigValue: millis(max(t.retention/8, 10*time.Minute))})
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Admin makes and checks the topics of a fleet.
type Admin struct {
	conf   Config
	client *brokers.Client
	params roster.Params
	needs  time.Duration
}

// NewAdmin makes one for the fleet of some settings. Needs is how long windows have to be kept at least.
func NewAdmin(c Config, params roster.Params, needs time.Duration) (*Admin, error) {
	client, err := c.Config.Dial("hopscope-topics")
	if err != nil {
		return nil, err
	}
	return &Admin{conf: c, client: client, params: params, needs: needs}, nil
}

// Close closes the connections.
func (a *Admin) Close() { a.client.Close() }

// Created is the result for a topic, or for the parameters.
type Created struct {
	Name    string `json:"name"`
	Created bool   `json:"created"` // false: it was there
}

// Create makes the topics that do not exist, and writes the parameters of the fleet to the roster if it has none.
// Existing ones stay as they are; Check returns their errors. Parameters that differ from those of the settings are a
// [*MismatchError], unless replace is set.
func (a *Admin) Create(ctx context.Context, replace bool) (made []Created, err error) {
	req := &kafka.CreateTopicsRequest{}
	wanted := a.conf.topics()
	for i := range wanted {
		t := &wanted[i]
		replication := a.conf.Topics.Replication
		if replication == 0 {
			replication = -1
		}
		req.Topics = append(req.Topics, kafka.TopicConfig{
			Topic: t.name, NumPartitions: t.partitions, ReplicationFactor: replication, ConfigEntries: t.settings(),
		})
	}
	create := func(name string) brokers.Op { return brokers.Op{ACL: "Create", Resource: "topic", Name: name} }
	resp, err := a.client.CreateTopics(ctx, req)
	for errors.Is(err, kafka.BrokerNotAvailable) && a.client.Reachable(ctx) && retry.Sleep(ctx, 200*time.Millisecond) {
		resp, err = a.client.CreateTopics(ctx, req) // the brokers are choosing a controller
	}
	if err != nil {
		return nil, a.client.Explain(err, create(a.conf.Prefix+"*"))
	}
	var errs []error
	for i := range wanted {
		name := wanted[i].name
		err := resp.Errors[name]
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			errs = append(errs, a.client.Explain(err, create(name)))
			continue
		}
		made = append(made, Created{name, err == nil})
	}
	if len(errs) > 0 {
		return made, errors.Join(errs...)
	}
	wrote, err := a.writeParams(ctx, replace)
	if err == nil {
		made = append(made, Created{a.client.Topic(brokers.Roster) + ", key " + roster.ParamsKey, wrote})
	}
	return made, err
}

// writeParams writes the parameters if there are none, and reports whether it did.
func (a *Admin) writeParams(ctx context.Context, replace bool) (wrote bool, _ error) {
	ctx, cancel := context.WithTimeout(ctx, freshTopic)
	defer cancel()
	value, err := json.Marshal(a.params)
	if err != nil {
		return false, err
	}
	table := a.table()
	for {
		_, err := table.Refresh(ctx)
		if err == nil {
			err = a.compare(table)
			if err == nil {
				return wrote, nil
			}
			if e := (*MismatchError)(nil); errors.As(err, &e) && len(e.Differences) > 0 && !replace {
				return false, err
			}
			if _, err = table.Put(ctx, roster.ParamsKey, value); err == nil {
				wrote = true
				continue // until they are read
			}
		}
		e, ok := errors.AsType[*brokers.Error](err)
		if !ok || e.Kind != brokers.Passing && e.Kind != brokers.NoTopic || !retry.Sleep(ctx, 100*time.Millisecond) {
			return false, err
		}
	}
}

// freshTopic is how long a new topic may take until it has a leader and all brokers know it.
const freshTopic = 30 * time.Second

func (a *Admin) table() *brokers.Table {
	return a.client.NewTable(a.client.Topic(brokers.Roster), brokers.TableBounds{
		Keys: 1, Value: 1 << 16, Bytes: 1 << 17, Keep: func(key string) bool { return key == roster.ParamsKey },
	})
}

// compare holds the parameters of the settings against those of the fleet.
func (a *Admin) compare(table *brokers.Table) error { return compareParams(table, &a.params) }

// compareParams holds the parameters of a member against those that the roster has.
func compareParams(table *brokers.Table, mine *roster.Params) error {
	value, ok := table.Get(roster.ParamsKey)
	if !ok {
		return &MismatchError{Fleet: table.Topic()}
	}
	var p roster.Params
	if err := json.Unmarshal(value, &p); err != nil {
		return &MismatchError{table.Topic(), []string{fmt.Sprintf("its parameters cannot be read: %v", err)}}
	}
	if d := p.Differences(mine); len(d) > 0 {
		return &MismatchError{table.Topic(), d}
	}
	return nil
}

// Deviation is something about a topic that is not as the fleet wants it.
type Deviation struct {
	Topic   string `json:"topic"`
	What    string `json:"what"`    // setting
	Have    string `json:"have"`    // in Kafka
	Want    string `json:"want"`    // by the settings of the fleet
	Problem bool   `json:"problem"` // the fleet does not work so; false is a warning
	Advice  string `json:"advice"`
}

// Check lists every deviation of the topics and of the parameters. It changes nothing.
func (a *Admin) Check(ctx context.Context) (list []Deviation, err error) {
	meta, err := a.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, a.client.Explain(err, brokers.ToDescribe(a.conf.Prefix+"*"))
	}
	there := map[string]*kafka.Topic{}
	for i := range meta.Topics {
		there[meta.Topics[i].Name] = &meta.Topics[i]
	}
	wanted := a.conf.topics()
	var present []*topic
	for i := range wanted {
		t := &wanted[i]
		have := there[t.name]
		if have == nil || errors.Is(have.Error, kafka.UnknownTopicOrPartition) {
			list = append(list, Deviation{t.name, "topic", "none", "one", !t.optional, "create it with: hopscope kafka topics create"})
			continue
		}
		if have.Error != nil {
			return list, a.client.Explain(have.Error, brokers.ToDescribe(t.name))
		}
		present = append(present, t)
		list = append(list, a.checkPartitions(t, have)...)
	}
	if len(present) > 0 {
		more, err := a.checkSettings(ctx, present)
		list = append(list, more...)
		if err != nil {
			return list, err
		}
	}
	roster := a.client.Topic(brokers.Roster)
	for _, t := range present {
		switch t.name {
		case a.client.Topic(brokers.Windows):
			more, err := a.checkConsumed(ctx, t)
			list = append(list, more...)
			if err != nil {
				return list, err
			}
		case roster:
			table := a.table()
			if _, err := table.Refresh(ctx); err != nil {
				return list, err
			}
			var e *MismatchError
			if err := a.compare(table); errors.As(err, &e) {
				d := Deviation{roster, "parameters", "none", "those of the settings", true, "write them with: hopscope kafka topics create"}
				if len(e.Differences) > 0 {
					d.Have = strings.Join(e.Differences, "; ")
					d.Advice = "give this member the fleet's settings; or stop all members and write new ones with: hopscope kafka topics create --replace"
				}
				list = append(list, d)
			}
		}
	}
	return list, nil
}

func (a *Admin) checkPartitions(t *topic, have *kafka.Topic) (list []Deviation) {
	switch n := len(have.Partitions); {
	case n < t.partitions:
		list = append(list, Deviation{t.name, "partitions", strconv.Itoa(n), strconv.Itoa(t.partitions), true,
			"slices go by partitions, so this fleet cannot run on it: set kafka.slices to what it was made with, or delete the topics, once consumers have merged everything, and create them again"})
	case n > t.partitions:
		list = append(list, Deviation{t.name, "partitions", strconv.Itoa(n), strconv.Itoa(t.partitions), false,
			"those that were added stay empty: the number of slices of a fleet does not change"})
	}
	least := 1 << 30
	for _, p := range have.Partitions {
		least = min(least, len(p.Replicas))
	}
	want := a.conf.Topics.Replication
	switch {
	case want > 0 && least < want:
		list = append(list, Deviation{t.name, "replication", strconv.Itoa(least), strconv.Itoa(want), false, "move its partitions to more brokers with kafka-reassign-partitions"})
	case want == 0 && least < 2 && len(have.Partitions) > 0:
		list = append(list, Deviation{t.name, "replication", "1", "3", false, "with one copy, a disk that fails takes windows with it"})
	}
	return list
}

func (a *Admin) checkSettings(ctx context.Context, present []*topic) (list []Deviation, _ error) {
	req := &kafka.DescribeConfigsRequest{}
	for _, t := range present {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: t.name})
	}
	resp, err := a.client.DescribeConfigs(ctx, req)
	op := func(name string) brokers.Op { return brokers.Op{ACL: "DescribeConfigs", Resource: "topic", Name: name} }
	if err != nil {
		return nil, a.client.Explain(err, op(a.conf.Prefix+"*"))
	}
	byName := map[string]map[string]string{}
	for _, r := range resp.Resources {
		if r.Error != nil {
			return nil, a.client.Explain(r.Error, op(r.ResourceName))
		}
		byName[r.ResourceName] = map[string]string{}
		for _, e := range r.ConfigEntries {
			byName[r.ResourceName][e.ConfigName] = e.ConfigValue
		}
	}
	for _, t := range present {
		have := byName[t.name]
		alter := func(setting, value string) string {
			return fmt.Sprintf("kafka-configs --alter --entity-type topics --entity-name %s --add-config %s=%s", t.name, setting, value)
		}
		add := func(setting, want string, problem bool, why string) {
			list = append(list, Deviation{t.name, setting, have[setting], want, problem, why + ": " + alter(setting, want)})
		}
		policy := "delete"
		if t.compact {
			policy = "compact"
		}
		if have["cleanup.policy"] != policy {
			why := "records that are needed are thrown away when a later one has the same key"
			if t.compact {
				why = "records that are needed are thrown away when they are old"
			}
			add("cleanup.policy", policy, true, why)
		}
		if n, err := strconv.Atoi(have["max.message.bytes"]); err != nil || n < t.message {
			add("max.message.bytes", strconv.Itoa(t.message), true, "long records are refused")
		}
		if have["message.timestamp.type"] != "LogAppendTime" {
			add("message.timestamp.type", "LogAppendTime", false, "the clocks of collectors decide how long records are kept, and are not held against Kafka's")
		}
		if have["compression.type"] != uncompressed {
			add("compression.type", uncompressed, false, "any writer of it can make its readers unpack more than they have memory for")
		}
		if t.compact {
			continue
		}
		kept, err := strconv.ParseInt(have["retention.ms"], 10, 64)
		needed := t.retention
		if t.name == a.client.Topic(brokers.Windows) || t.name == a.client.Topic(brokers.Reports) {
			needed = max(needed, a.needs)
		}
		switch {
		case err == nil && kept < 0: // for ever
		case err != nil || kept < a.needs.Milliseconds() && t.name != a.client.Topic(brokers.Series):
			add("retention.ms", millis(needed), true, fmt.Sprintf("windows of which late parts are taken for %v are gone before", a.needs))
		case kept < needed.Milliseconds():
			add("retention.ms", millis(needed), false, "records are kept for a shorter time than the settings say")
		}
		if limit, err := strconv.ParseInt(have["retention.bytes"], 10, 64); err == nil && limit >= 0 {
			list = append(list, Deviation{t.name, "retention.bytes", have["retention.bytes"], "-1", false,
				"records can be thrown away before their time: " + alter("retention.bytes", "-1")})
		}
	}
	return list, nil
}

// checkConsumed looks for records that were thrown away before a consumer had read them.
func (a *Admin) checkConsumed(ctx context.Context, t *topic) (list []Deviation, _ error) {
	group := a.conf.Group()
	all := make([]int, t.partitions)
	first := make([]kafka.OffsetRequest, t.partitions)
	for i := range all {
		all[i], first[i] = i, kafka.FirstOffsetOf(i)
	}
	var committed *kafka.OffsetFetchResponse
	for {
		var err error
		committed, err = a.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{t.name: all}})
		if err == nil {
			err = committed.Error
		}
		if err == nil {
			break
		}
		// A fresh Kafka makes the topic of offsets when it is first asked for.
		starting := errors.Is(err, kafka.GroupCoordinatorNotAvailable) || errors.Is(err, kafka.NotCoordinatorForGroup) || errors.Is(err, kafka.GroupLoadInProgress)
		if !starting || !retry.Sleep(ctx, 200*time.Millisecond) {
			return nil, a.client.Explain(err, brokers.Op{ACL: "Describe", Resource: "group", Name: group})
		}
	}
	offsets, err := a.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{t.name: first}})
	if err != nil {
		return nil, a.client.Explain(err, brokers.ToDescribe(t.name))
	}
	begins := map[int]int64{}
	for _, p := range offsets.Topics[t.name] {
		if p.Error == nil {
			begins[p.Partition] = p.FirstOffset
		}
	}
	for _, p := range committed.Topics[t.name] {
		if begin, ok := begins[p.Partition]; ok && p.CommittedOffset >= 0 && p.CommittedOffset < begin {
			list = append(list, Deviation{t.name, fmt.Sprintf("partition %d", p.Partition), "begins at offset " + strconv.FormatInt(begin, 10),
				"offset " + strconv.FormatInt(p.CommittedOffset, 10), true,
				"records were thrown away before the consumers had merged them, and their windows are lost: start the consumers, and keep windows for longer (kafka.topics.windows_retention)"})
		}
	}
	return list, nil
}
