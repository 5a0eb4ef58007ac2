package loop

import (
	"errors"
	"net/http"
	"testing"
)

// TestAskAdminErrors: an address that is none and a control that does not answer have errors of their own, and the cause stays.
func TestAskAdminErrors(t *testing.T) {
	if _, err := AskAdmin(t.Context(), "ftp://127.0.0.1", http.MethodGet, "/status"); !errors.Is(err, ErrURL) {
		t.Errorf("a wrong address: %v", err)
	}
	_, err := AskAdmin(t.Context(), "unix:"+t.TempDir()+"/nothing", http.MethodGet, "/status")
	if !errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrURL) || errors.Unwrap(err) == nil {
		t.Errorf("a socket that is not there: %v", err)
	}
}
