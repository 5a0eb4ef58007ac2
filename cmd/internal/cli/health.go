package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// HealthCommand makes the command that asks whether a running program is ready.
func HealthCommand() *cobra.Command {
	var page string
	var timeout time.Duration
	var alive bool
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask a running hopscope whether it is ready: for health checks of containers",
		Long: `Ask the page of a running collector, consumer or console whether it is ready, and
print what keeps it from that. Exit status 0 if it is, 1 if it is not or does not
answer. It needs no token, and no shell or other program, which the image has not.`,
		Args: ExactArgs(0),
	}
	c.Flags().StringVar(&page, "url", "http://127.0.0.1:8080", "page of the running program")
	c.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "longest wait for the answer")
	c.Flags().BoolVar(&alive, "alive", false, "ask only whether it lives")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := CheckURL("url", page); err != nil {
			return err
		}
		if timeout <= 0 {
			return Usagef("--timeout %v is not above 0", timeout)
		}
		path := "/readyz"
		if alive {
			path = "/healthz"
		}
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(page, "/")+path, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("nothing answers at %s (another one: --url): %w", page, err)
		}
		defer res.Body.Close()
		const most = 16 << 10 // of reasons why it is not ready
		body, err := io.ReadAll(io.LimitReader(res.Body, most))
		text := strings.TrimSpace(string(body))
		switch {
		case err != nil:
			return fmt.Errorf("read the answer of %s: %w", page, err)
		case res.StatusCode == http.StatusServiceUnavailable && text != "":
			return errors.New(text)
		case res.StatusCode != http.StatusOK:
			return fmt.Errorf("%s: %s", page, res.Status)
		}
		fmt.Fprintln(c.OutOrStdout(), text)
		return nil
	}
	return c
}
