package p4rt

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/hopscope/hopscope/ingest/peer"
)

// Election is the id that a controller stands for election with: the highest is primary. It is not 0.
type Election struct{ High, Low uint64 }

// Above compares ids.
func (e Election) Above(o Election) bool { return e.High > o.High || e.High == o.High && e.Low > o.Low }

// Config names the switch of a client, and the identity of the client there.
type Config struct {
	Address   string      // HOST:PORT
	TLS       *tls.Config // such as of [LoadTLS]
	Plaintext bool        // without TLS, for switches that have none; on lines that no other host can reach

	Device   uint64   // id of the switch behind its address
	role     string   // "" for that which may do everything
	Election Election // of this controller; one that takes over from another has a higher id, such as a number that fences
	Pipeline *Pipeline
	Commit   bool // load the pipeline where the switch has none or another one; without it that is reported, and nothing is done

	// Owner is written beside every entry, so that it is known again ([p4.Entry.Owner]). Clone sessions have no room for it:
	// those from ownSessions[0] to ownSessions[1] are read as the owner's.
	Owner       string
	ownSessions [2]uint32

	Timeout      time.Duration // of one request; 0 for 10 s
	firstWait    time.Duration // before a connection is tried again; it doubles up to mostWait. 0 for 250 ms
	mostWait     time.Duration // 0 for 15 s
	checkEvery   time.Duration // how often the pipeline of the switch is read, which shows that it is there; 0 for 10 s
	batchUpdates int           // in one request; 0 for 500
	batchBytes   int           // in one request, about; 0 for 1 MiB
	maxEntries   int           // that one read may return; 0 for 1 Mi

	// OnState is called with each change, one after the other. It returns soon, and calls nothing of the client but State.
	//
	// The others are called with unsolicited messages of the switch, one after the other. While one runs, up to 1,024
	// messages wait; further ones are dropped and counted. A digest is acknowledged when onDigest returns.
	OnState  func(State)
	onPacket func(Packet)
	onDigest func(Digest)
}

// State is the state of the connection to the switch.
type State struct {
	Connected bool     // there is a stream
	Primary   bool     // this controller may write
	Leader    Election // the primary, as far as the switch reports it
	Ready     bool     // the switch runs the pipeline
	Problem   error    // why it is not connected, or not ready
}

// Set reports whether the client can write: it is primary, of a switch with the right pipeline.
func (s State) Set() bool { return s.Connected && s.Primary && s.Ready }

// same reports whether there is nothing to notify: a problem is the same if it reads the same.
func (s State) same(o State) bool {
	if (s.Problem == nil) != (o.Problem == nil) || s.Problem != nil && s.Problem.Error() != o.Problem.Error() {
		return false
	}
	s.Problem, o.Problem = nil, nil
	return s == o
}

const (
	maxMessage = 64 << 20
	maxOwner   = 64
)

// check fills in what was left out.
func (c *Config) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Address == "" {
		wrong("address: is missing")
	}
	if (c.TLS == nil) != c.Plaintext {
		wrong("address %s: want either TLS or plaintext", c.Address)
	}
	if c.Pipeline == nil {
		wrong("pipeline: is missing")
	} else if c.Commit && c.Pipeline.device == nil {
		wrong("pipeline: has no program to commit")
	}
	if c.Election == (Election{}) {
		wrong("election id: must not be 0")
	}
	if err := checkOwner(c.Owner); err != nil {
		errs = append(errs, err)
	}
	for _, x := range []struct {
		v    *time.Duration
		what string
		def  time.Duration
	}{{&c.Timeout, "timeout", 10 * time.Second}, {&c.firstWait, "first wait", 250 * time.Millisecond}, {&c.mostWait, "most wait", 15 * time.Second},
		{&c.checkEvery, "check every", 10 * time.Second}} {
		if *x.v < 0 {
			wrong("%s: %v", x.what, *x.v)
		}
		if *x.v == 0 {
			*x.v = x.def
		}
	}
	for _, x := range []struct {
		v    *int
		what string
		def  int
	}{{&c.batchUpdates, "batch updates", 500}, {&c.batchBytes, "batch bytes", 1 << 20}, {&c.maxEntries, "max entries", 1 << 20}} {
		if *x.v < 0 {
			wrong("%s: %d", x.what, *x.v)
		}
		if *x.v == 0 {
			*x.v = x.def
		}
	}
	return errors.Join(errs...)
}

// checkOwner wants what files and logs can hold.
func checkOwner(owner string) error {
	if len(owner) > maxOwner || !utf8.ValidString(owner) {
		return fmt.Errorf("owner: want a text of at most %d bytes", maxOwner)
	}
	return nil
}

// LoadTLS makes mutual TLS from PEM files. The switch is known by its name alone, and signed by the authorities in caFile.
// The controller's own certificate is read again for every connection.
func LoadTLS(name, caFile, certFile, keyFile string) (*tls.Config, error) {
	if name == "" {
		return nil, errors.New("name: is missing, and without it any certificate of ca_file could be the switch's")
	}
	authorities, _, err := peer.Mutual(caFile, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		certificate, err := peer.Certificate(certFile, keyFile)
		if err != nil {
			return nil, err
		}
		return &certificate[0], nil
	}
	return &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12, RootCAs: authorities, GetClientCertificate: own}, nil
}
