package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hopscope/hopscope/decode/packet"
	"github.com/hopscope/hopscope/p4/probe"
)

// Config holds the agent's identity, where it sends and receives, and its limits.
type Config struct {
	Name        string   `yaml:"name" doc:"Name of the agent in plans. Empty is the host's name."`
	Interface   string   `yaml:"interface" doc:"Interface of source-routed probes. Empty is for STAMP alone."`
	Address     string   `yaml:"address" doc:"IPv4 source address of probes. Empty is the interface's first one."`
	Destination string   `yaml:"destination" doc:"IPv4 address of the receiving host, for probes without one in the plan. Empty is the agent's own."`
	PeerMAC     string   `yaml:"peer_mac" doc:"Destination MAC address of probes. Every card takes the default; behind ordinary bridges set that of the switch's port."`
	Mark        int      `yaml:"mark" range:"0..63" doc:"DSCP of all probes of all agents, by which switches leave them out of their counters."`
	NodeID      int64    `yaml:"node_id" range:"0..4294967295" doc:"Node id of the agent in reports, unique among switches. 0 derives one from 4026531840 (0xf0000000) on from the agent's name."`
	HardwareID  int      `yaml:"hardware_id" range:"0..63" doc:"Hardware id in reports, for several agents with one node id."`
	Collectors  []string `yaml:"collectors" doc:"Receivers of reports 2.0, as HOST:PORT. A probe always goes to the same one."`

	SendLimit       float64 `yaml:"send_limit_bps" range:"1000..1000000000000" doc:"Most bits a second of probes sent, with the framing on the line. Plans above it are refused."`
	ReceiveLimit    float64 `yaml:"receive_limit_bps" range:"1000..1000000000000" doc:"Most bits a second of probes that a plan may bring to the agent."`
	ProbesPerSecond float64 `yaml:"probes_per_second" range:"1..100000000" doc:"Most probes a second that it sends."`
	MaxProbes       int     `yaml:"max_probes" range:"1..16384" doc:"Most probes that it sends, and most whose loss it follows."`
	MTU             int     `yaml:"mtu" range:"576..9000" doc:"Largest IP packet in the network and towards collectors. Plans whose probes would outgrow their reports are refused."`

	Checksum   bool   `yaml:"udp_checksum" doc:"Send UDP checksums. Switches that add to probes must keep them right or zero; set false where they do neither."`
	DigestKeys string `yaml:"digest_keys" doc:"File of keys for digests of probes: lines of a number and 16 to 64 bytes in hex. The first key signs; all verify. Empty disables digests."`
	Unsigned   bool   `yaml:"accept_unsigned" doc:"Also accept probes without a digest, while some agents have no keys."`

	BatchSize          int `yaml:"batch_size" range:"1..1024" doc:"Frames that are sent or received with one system call."`
	ReceiveBufferBytes int `yaml:"receive_buffer_bytes" range:"4096..1073741823" doc:"Receive buffer of the socket of probes, and of each address of stamp.reflector; above net.core.rmem_max with CAP_NET_ADMIN."`

	Files      probe.Files `yaml:"plan" doc:"A plan from files, without a controller."`
	Controller Controller  `yaml:"controller" doc:"Plans from a controller, over gRPC with mutual TLS."`
	STAMP      STAMP       `yaml:"stamp" doc:"Probes of STAMP (RFC 8762), for networks whose switches load no program."`
}

// Controller is the source of plans, and the certificate by which it is authenticated.
type Controller struct {
	Address  string `yaml:"address" doc:"HOST:PORT of the controller. Empty is none."`
	Name     string `yaml:"name" doc:"Name in the controller's certificate. Plans from any other are refused."`
	CAFile   string `yaml:"ca_file" doc:"PEM file of the authorities that sign the controller's certificate, in place of the system's."`
	CertFile string `yaml:"cert_file" doc:"PEM file of the agent's certificate, read for every connection."`
	KeyFile  string `yaml:"key_file" doc:"PEM file of the key that belongs to cert_file."`
	PlanFile string `yaml:"plan_file" doc:"File of the last plan, for a start without the controller. Empty keeps none."`
}

// DefaultConfig is an agent that reports to a collector on its own machine and has no plan.
func DefaultConfig() Config {
	c := Config{
		PeerMAC: "ff:ff:ff:ff:ff:ff", Mark: 27, Checksum: true, Collectors: []string{"127.0.0.1:32766"},
		SendLimit: 10e6, ReceiveLimit: 100e6, ProbesPerSecond: 10_000, MaxProbes: 4096, MTU: 1500,
		BatchSize: 64, ReceiveBufferBytes: 4 << 20,
		Files: probe.Files{Interval: time.Second, Dialect: string(probe.INT21)},
	}
	c.STAMP.SetDefaults()
	return c
}

// reportedNode is the node id that the agent of c reports as: that of the settings, or one of the space of agents.
func (c *Config) reportedNode() uint32 {
	if c.NodeID != 0 {
		return uint32(c.NodeID)
	}
	return probe.AgentNode(c.Name)
}

// SetName sets the name of an agent without one to that of the machine.
func (c *Config) SetName() error {
	if c.Name != "" {
		return nil
	}
	name, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("agent: name is empty, and the machine has none: %w", err)
	}
	c.Name = name
	return nil
}

// SetDefaults makes c the default settings.
func (c *Config) SetDefaults() { *c = DefaultConfig() }

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Config) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch planned := c.Files.Named() || c.Controller.Address != ""; {
	case c.Interface == "" && planned:
		wrong("interface: is missing; \"ip link\" lists them")
	case c.Interface == "" && !c.STAMP.Used():
		wrong("interface: is missing; \"ip link\" lists them, and stamp.sessions or stamp.reflector.listen need none")
	}
	if perSecond, bps := c.STAMP.load(); perSecond > c.ProbesPerSecond || bps > c.SendLimit {
		wrong("stamp: %.4g packets a second and %.4g bit/s are above probes_per_second or send_limit_bps; raise stamp.interval", perSecond, bps)
	}
	for _, a := range []struct{ key, value string }{{"address", c.Address}, {"destination", c.Destination}} {
		if ip, err := netip.ParseAddr(a.value); a.value != "" && (err != nil || !ip.Is4()) {
			wrong("%s: %q is no IPv4 address", a.key, a.value)
		}
	}
	if _, err := parseMAC(c.PeerMAC); err != nil {
		wrong("peer_mac: %w", err)
	}
	if len(c.Collectors) == 0 {
		wrong("collectors: are missing; reports would go nowhere")
	}
	for i, a := range c.Collectors {
		if !hostPort(a) {
			wrong("collectors[%d]: %q is not HOST:PORT", i, a)
		}
	}
	if c.Controller.Address != "" && c.Files.Named() {
		wrong("controller: plan names files too; choose one")
	}
	return errors.Join(errs...)
}

// check is Validate for c and its parts.
func (c *Config) check() error {
	part := func(key string, err error) error {
		if err != nil {
			return fmt.Errorf("%s.%w", key, err)
		}
		return nil
	}
	return errors.Join(c.Validate(), part("plan", c.Files.Validate()), part("controller", c.Controller.Validate()), part("stamp", c.STAMP.Validate()), part("stamp.ioam", c.STAMP.IOAM.Validate()), part("stamp.reflector", c.STAMP.Reflector.Validate()))
}

// Validate finds what is wrong beyond the ranges of single values. It reads no file.
func (c *Controller) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Address == "" {
		if c.Name != "" || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" || c.PlanFile != "" {
			wrong("address: is missing, so that the other keys of controller have no effect")
		}
		return errors.Join(errs...)
	}
	if !hostPort(c.Address) {
		wrong("address: %q is not HOST:PORT", c.Address)
	}
	for _, x := range []struct{ key, value, why string }{
		{"name", c.Name, "any certificate of ca_file could send plans"},
		{"ca_file", c.CAFile, "the controller could not be known"},
		{"cert_file", c.CertFile, "the controller could not know the agent"},
		{"key_file", c.KeyFile, "the controller could not know the agent"},
	} {
		if x.value == "" {
			wrong("%s: is missing, and without it %s", x.key, x.why)
		}
	}
	return errors.Join(errs...)
}

// CheckFiles reads the file of keys of digests.
func (c *Config) CheckFiles() error {
	if c.DigestKeys == "" {
		return nil
	}
	if _, err := probe.ReadKeys(c.DigestKeys); err != nil {
		return fmt.Errorf("digest_keys: %w", err)
	}
	return nil
}

// CheckFiles reads the files of keys that the settings name, and returns every problem with them.
func (c *Controller) CheckFiles() error {
	if c.Address == "" {
		return nil
	}
	_, err := c.tls()
	return err
}

// Limits are those that plans are held against.
func (c *Config) Limits() probe.Limits {
	return probe.Limits{Name: c.Name, SendBPS: c.SendLimit, ReceiveBPS: c.ReceiveLimit, Probes: c.MaxProbes, MTU: c.MTU, ProbesPerSec: c.ProbesPerSecond}
}

func hostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && host != "" && n >= 1 && n <= 65535 && !strings.ContainsAny(s, " \t")
}

func parseMAC(s string) (m packet.MAC, err error) {
	b, err := net.ParseMAC(s)
	if err == nil && len(b) != len(m) {
		err = fmt.Errorf("%q has not 6 bytes", s)
	}
	copy(m[:], b)
	return m, err
}
