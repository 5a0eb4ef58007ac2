package receiver

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/hopscope/hopscope/ingest/peer"
	"github.com/hopscope/hopscope/sink"
)

// Syslog names the receiver of alerts, and holds its settings.
type Syslog struct {
	Network    string `yaml:"network" doc:"Transport of messages: datagrams (udp, unix) or streams (tcp, tls). udp, tcp and tls confirm no arrival." oneof:"udp|tcp|tls|unix"`
	Address    string `yaml:"address" doc:"Receiver as HOST:PORT; for unix the socket's path, such as /dev/log."`
	Facility   string `yaml:"facility" doc:"Facility of the messages." oneof:"kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local0|local1|local2|local3|local4|local5|local6|local7"`
	Hostname   string `yaml:"hostname" doc:"Name of the machine in the messages. Empty means its own."`
	AppName    string `yaml:"app_name" doc:"Name of the program in the messages."`
	SDID       string `yaml:"sd_id" doc:"Name of the structured data, as NAME@NUMBER with your enterprise number."`
	MaxBytes   int    `yaml:"max_bytes" doc:"Most bytes of a message; longer texts are cut. Every receiver takes 480, most take 2048." range:"480..65000"`
	Heartbeats bool   `yaml:"heartbeats" doc:"Send the signs of life, too."`
	peer.TLS   `yaml:",inline" shared:"TLS"`
	Timeout    time.Duration `yaml:"timeout" doc:"Longest wait for a connection, and for a receiver that takes nothing." range:"100ms..10m"`
}

// SetDefaults makes c the default settings: the receiver of this machine.
func (c *Syslog) SetDefaults() {
	*c = Syslog{Network: "udp", Address: "127.0.0.1:514", Facility: "daemon", AppName: "hopscope", SDID: "hopscope@32473", MaxBytes: 2048, Timeout: 10 * time.Second}
}

// Alerts reports that this store takes alerts.
func (c Syslog) Alerts() bool { return true }

// Target returns where alerts go, for display.
func (c Syslog) Target() string { return c.Network + " " + c.Address }

// Doc returns the purpose of the switch, the queue and the spool of this store, and of TLS here.
func (c Syslog) Doc(key string) string {
	return map[string]string{
		"enabled":      "Send alerts to a syslog receiver.",
		"spool":        "Messages on disk while the receiver is away, as far as syslog shows it.",
		"tls_insecure": "Accept any certificate. A machine in between can read the alerts.",
	}[key]
}

// facilities in the order of their numbers; 12 to 15 have no common names.
var facilities = []string{"kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp", "", "", "", "",
	"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"}

// names are what the grammar of RFC 5424 allows in a header, and in the name of structured data.
var (
	headerName = regexp.MustCompile(`^[!-~]+$`)
	dataName   = regexp.MustCompile(`^[!#-<>-\\^-~]{1,20}@[0-9]{1,10}$`)
)

// Validate finds everything that is wrong with c beyond the ranges of single values. It reads no file.
func (c *Syslog) Validate() error {
	var errs []error
	if c.Network == "unix" {
		if !filepath.IsAbs(c.Address) {
			errs = append(errs, errors.New("address: must be the whole path of a socket, such as /dev/log"))
		}
	} else if host, port, err := net.SplitHostPort(c.Address); err != nil || host == "" || port == "" {
		errs = append(errs, errors.New("address: must be HOST:PORT"))
	}
	if c.Hostname != "" && (!headerName.MatchString(c.Hostname) || len(c.Hostname) > 255) {
		errs = append(errs, errors.New("hostname: must be at most 255 characters of ASCII without spaces"))
	}
	if !headerName.MatchString(c.AppName) || len(c.AppName) > 48 {
		errs = append(errs, errors.New("app_name: must be 1 to 48 characters of ASCII without spaces"))
	}
	if !dataName.MatchString(c.SDID) || strings.Count(c.SDID, "@") != 1 {
		errs = append(errs, errors.New("sd_id: must be NAME@NUMBER, with at most 20 characters of ASCII before the @ and none of them a space, =, ] or a quote"))
	}
	if c.Network != "tls" && c.TLS.Used() {
		errs = append(errs, fmt.Errorf("network: is %s, so ca_file, cert_file and tls_insecure have no effect; use tls or remove them", c.Network))
	}
	return errors.Join(append(errs, c.TLS.Problems())...)
}

// CheckFiles reads the files that the settings name.
func (c *Syslog) CheckFiles() error {
	_, err := c.TLS.Config()
	return err
}

// Open makes a [SyslogWriter] of these settings.
func (c Syslog) Open() (sink.Writer, error) {
	return sink.Opened(newSyslog(c))
}
