package peer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Files and environment variables have the same rules, and no error quotes a secret.
func TestSecret(t *testing.T) {
	for _, tt := range []struct {
		content    string
		want       string
		file, env  string // what an error says
		headerSays string // of [Header], where it differs
	}{
		{content: "abracadabra", want: "abracadabra"},
		{content: " \tabracadabra \r\n\n", want: "abracadabra"},
		{content: "open sesame", want: "open sesame"},
		{content: "geheimnis-ü", want: "geheimnis-ü", headerSays: "token: holds a line break or another character that no token has"},
		{content: "", file: " is empty", env: " is not set"},
		{content: " \n ", file: " is empty", env: " is not set"},
		{content: "abra\ncadabra", file: "token: holds a line break", env: "token: holds a line break"},
		{content: "abra\x7fcadabra", file: "token: holds a line break", env: "token: holds a line break"},
		{content: "abra\x1bcadabra", file: "token: holds a line break", env: "token: holds a line break"},
		{content: strings.Repeat("abra", maxSecret/4), want: strings.Repeat("abra", maxSecret/4)},
		{content: strings.Repeat("abra", maxSecret/4) + "c", file: "more than 65536 bytes", want: strings.Repeat("abra", maxSecret/4) + "c"},
	} {
		t.Setenv("HOPSCOPE_TEST_SECRET", tt.content)
		path := write(t, tt.content)
		for _, from := range []struct{ file, env, says string }{{path, "", tt.file}, {"", "HOPSCOPE_TEST_SECRET", tt.env}, {path, "HOPSCOPE_TEST_SECRET", tt.file}} {
			check := func(name, got string, err error, says string) {
				want := tt.want
				if says != "" {
					want = ""
				}
				if got != want || (says == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "abra") || strings.Contains(err.Error(), "geheim")) {
					t.Errorf("%s(%.20q, %+v) = %.20q, %v; want %.20q, %q", name, tt.content, from, got, err, want, says)
				}
			}
			got, err := Secret("token", from.file, from.env)
			check("Secret", got, err, from.says)
			if tt.headerSays != "" {
				from.says = tt.headerSays
			}
			got, err = Header("token", from.file, from.env)
			check("Header", got, err, from.says)
		}
	}
	if got, err := Secret("token", "", ""); got != "" || err != nil {
		t.Errorf("without a source: %q, %v", got, err)
	}
	for _, tt := range []struct{ file, env, want string }{
		{file: filepath.Join(t.TempDir(), "none"), want: "token_file: open "},
		{file: t.TempDir(), want: "token_file: read "},
		{env: "HOPSCOPE_TEST_NONE", want: "token_env: the environment variable HOPSCOPE_TEST_NONE is not set"},
	} {
		if _, err := Secret("token", tt.file, tt.env); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Secret(%q, %q): %v, want %q", tt.file, tt.env, err, tt.want)
		}
	}
}

func TestTLSFiles(t *testing.T) {
	bad := write(t, "no PEM")
	if pool, certs, err := Optional("", "", ""); pool != nil || certs != nil || err != nil {
		t.Errorf("Optional without files: %v, %v, %v", pool, certs, err)
	}
	if pool, certs, err := Optional("", bad, ""); pool != nil || certs != nil || err != nil {
		t.Errorf("Optional without a key: %v, %v, %v", pool, certs, err)
	}
	_, _, err := Optional(bad, bad, bad)
	for _, want := range []string{"ca_file: " + bad + " holds no PEM certificate", "cert_file: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Optional(%q): %v does not say %q", bad, err, want)
		}
	}
	// What is not named is not left out: without authorities, those of the system would count.
	for _, ca := range []string{"", bad} {
		if pool, _, err := Mutual(ca, "", ""); err == nil || !strings.HasPrefix(err.Error(), "ca_file: ") || pool != nil {
			t.Errorf("Mutual(%q): %v, %v", ca, pool, err)
		}
	}
}
