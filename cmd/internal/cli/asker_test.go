package cli

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAskerErrors holds that a page which does not answer, or refuses, is an error with what to change.
func TestAskerErrors(t *testing.T) {
	wantsToken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer wantsToken.Close()
	ofOwnAuthority := httptest.NewUnstartedServer(http.NotFoundHandler())
	ofOwnAuthority.Config.ErrorLog = log.New(io.Discard, "", 0)
	ofOwnAuthority.StartTLS()
	defer ofOwnAuthority.Close()
	ended := httptest.NewServer(http.NotFoundHandler())
	ended.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		asker Asker
		want  string
	}{
		{Asker{URL: ended.URL}, "no collector answers at " + ended.URL + " (another one: --url): "},
		{Asker{URL: ended.URL, Program: "agent", Flag: "of"}, "no agent answers at " + ended.URL + " (another one: --of): "},
		{Asker{URL: ended.URL, Setting: "collector.url"}, "no collector answers at " + ended.URL + " (another one: collector.url): "},
		{Asker{URL: wantsToken.URL}, wantsToken.URL + " wants a token: --token-file"},
		{Asker{URL: wantsToken.URL, Setting: "collector.url"}, wantsToken.URL + " wants a token: set token_file"},
		{Asker{URL: wantsToken.URL, TokenFile: token}, wantsToken.URL + " refuses the token of " + token + ": it is wrong, expired or revoked"},
		{Asker{URL: ofOwnAuthority.URL}, "the certificate of " + ofOwnAuthority.URL + " is not trusted: the environment variable SSL_CERT_FILE can name a file of authorities: "},
	} {
		var v any
		err := c.asker.Into(t.Context(), "/api/status", &v)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.asker, err, c.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: the token is in %v", c.asker, err)
		}
	}
}
