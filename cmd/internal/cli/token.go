package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hopscope/hopscope/inference/names"
	"github.com/hopscope/hopscope/sink/web/access"
)

// TokenCommand makes the command that makes, lists and revokes tokens of a page.
func TokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens of a running page, by role",
		Long: `Ask the page of a running collector or console for tokens by role: viewer reads,
operator also mutes, acknowledges, comments and commands the control of probes, admin
also makes tokens. The page needs web.access.dir, where it keeps their hashes, and a
token of an admin: that of web.token_file is one. Each change is in the page's log of
changes. docs/access.md has more.`,
		Example: `  hopscope token create --name grafana --role viewer --token-file /etc/hopscope/token
  hopscope token list --token-file /etc/hopscope/token
  hopscope token revoke grafana --token-file /etc/hopscope/token`,
		Args: ExactArgs(0),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand())
	return c
}

func tokenCreateCommand() *cobra.Command {
	var a Asker
	var name, role string
	var expires time.Duration
	c := &cobra.Command{
		Use:   "create",
		Short: "Make a token, and print its secret this once",
		Long: `Make a token and print its secret, which is kept nowhere and printed never again:
write it to a file that --token-file names. A program sends it in the header
Authorization: Bearer, never in an address.`,
		Example: `  hopscope token create --name grafana --role viewer --token-file /etc/hopscope/token
  hopscope token create --name ci --role operator --expires 720h --token-file /etc/hopscope/token > ci-token`,
		Args: ExactArgs(0),
	}
	a.Flags(c)
	c.Flags().StringVar(&name, "name", "", "what it is for; no other token has it")
	c.Flags().StringVar(&role, "role", "", "viewer, operator or admin")
	c.Flags().DurationVar(&expires, "expires", 0, "for how long it holds (0: until it is revoked)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		as, err := access.ParseRole(role)
		if err != nil {
			return Usagef("--%w", err)
		}
		if name == "" {
			return Usagef("--name says what the token is for")
		}
		if expires < 0 || expires > 0 && expires < time.Second {
			return Usagef("--expires %v is less than a second", expires)
		}
		var made access.MadeToken
		if err := a.Post(c.Context(), "/api/tokens/create", access.NewToken{Name: name, Role: as, ExpiresSeconds: int64(expires / time.Second)}, &made, c.OutOrStdout()); err != nil || a.Format == "json" {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "made %s (%s), role %v; this is its secret, which is printed this once:\n", names.Printable(made.Token.Name), names.Printable(made.Token.ID), made.Token.Role)
		_, err = fmt.Fprintln(c.OutOrStdout(), made.Secret)
		return err
	}
	return c
}

func tokenListCommand() *cobra.Command {
	var a Asker
	c := &cobra.Command{
		Use:   "list",
		Short: "List the tokens, and when each was used last",
		Args:  ExactArgs(0),
	}
	a.Flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		var list access.TokenList
		if err := a.Get(c.Context(), "/api/tokens", &list, c.OutOrStdout()); err != nil || a.Format == "json" {
			return err
		}
		if len(list.Tokens) == 0 {
			_, err := fmt.Fprintln(c.OutOrStdout(), "There are no tokens by role: hopscope token create makes one.")
			return err
		}
		at := func(ms int64, none string) string {
			if ms == 0 {
				return none
			}
			return time.UnixMilli(ms).UTC().Format(time.RFC3339)
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tROLE\tMADE\tBY\tEXPIRES\tLAST USED\tFROM")
		for _, t := range list.Tokens {
			fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%s\t%s\t%s\n", names.Printable(t.ID), names.Printable(t.Name), t.Role, at(t.CreatedMS, "-"), cmp.Or(names.Printable(t.CreatedBy), "-"),
				at(t.ExpiresMS, "never"), at(t.UsedMS, "never"), cmp.Or(names.Printable(t.UsedFrom), "-"))
		}
		return w.Flush()
	}
	return c
}

func tokenRevokeCommand() *cobra.Command {
	var a Asker
	c := &cobra.Command{
		Use:     "revoke ID|NAME",
		Short:   "Revoke a token, and end the sessions that began with it",
		Example: "  hopscope token revoke grafana --token-file /etc/hopscope/token",
		Args:    ExactArgs(1),
	}
	a.Flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var done access.Done
		if err := a.Post(c.Context(), "/api/tokens/revoke", access.Named{ID: args[0]}, &done, c.OutOrStdout()); err != nil || a.Format == "json" {
			return err
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), names.Printable(done.Done))
		return err
	}
	return c
}
