package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/access"
	"sextant/agent/api"
	"sextant/packet/lists"
)

// defaultTokens is where a file of tokens is if nothing else is said.
const defaultTokens = "/etc/sextant/tokens"

func (a *app) tokenCommand() *cobra.Command {
	var file string
	cmd := noun("token", "Make and remove tokens of the API over TLS",
		seeAlso("sextant context", "sextant config explain"),
		a.tokenAdd(&file), a.tokenList(&file), a.tokenRemove(&file))
	cmd.Long = `Make and remove tokens of the API over TLS, in a file on this node that api.listen.tokens of a node file or of a
controller's file names. The file has their hashes alone. A change holds at once, without a restart.`
	for _, sub := range cmd.Commands() {
		sub.Flags().StringVarP(&file, "file", "f", defaultTokens, "file of tokens")
		_ = sub.MarkFlagFilename("file") // fails without such a flag only
	}
	return cmd
}

func (a *app) tokenAdd(file *string) *cobra.Command {
	var role, expires string
	cmd := &cobra.Command{
		Use: "add LABEL", Short: "Make a token, and print it",
		Long: `Make a token with a label, and print it. It can't be shown again. The role read looks at everything but secrets;
operate also drains, weighs, marks and explains; admin also changes the configuration, reads secrets and captures packets.`,
		Example: "  sextant token add grafana --role read --expires never\n" +
			"  sextant token add ada@laptop --role operate --expires 30d > token",
		Annotations: seeAlso("sextant token list", "sextant context add"),
		Args:        takes("LABEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			end, err := expiryOf(expires, time.Now())
			if err != nil {
				return err
			}
			token, text, err := access.NewToken(args[0], api.Permission(role), end)
			if err != nil {
				return usageError{err}
			}
			err = access.EditTokens(*file, func(all []access.Token) ([]access.Token, error) {
				if slices.ContainsFunc(all, labelled(token.Label)) {
					return nil, &api.Error{Code: api.Conflict, Message: fmt.Sprintf("%s has a "+
						"token with this label; remove that, or choose another label", *file)}
				}
				if len(all) >= access.MaxTokens {
					return nil, &api.Error{Code: api.Conflict, Message: fmt.Sprintf("%s has %d "+
						"tokens; remove those that have expired", *file, len(all))}
				}
				return append(all, token), nil
			})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, text)
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "role", string(api.Read), "read, operate or admin")
	cmd.Flags().StringVar(&expires, "expires", "90d",
		"how long it is valid (90d, 12h), or never")
	complete(cmd, "role", string(api.Read), string(api.Operate), string(api.Admin))
	return cmd
}

// expiryOf is when a token ends; the zero value: never.
func expiryOf(text string, now time.Time) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if number, days := strings.CutSuffix(text, "d"); days {
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= 36500 {
			return now.AddDate(0, 0, n), nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, usageErrorf("--expires %q is no time; write it like 90d or 12h, or never",
		text)
}

func labelled(label string) func(access.Token) bool {
	return func(t access.Token) bool { return t.Label == label }
}

// tokenItem is a token in JSON.
type tokenItem struct {
	Label   string         `json:"label"`
	Role    api.Permission `json:"role"`
	Expires *time.Time     `json:"expires,omitempty"`
	Expired bool           `json:"expired"`
}

func (a *app) tokenList(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens of a file, without the tokens themselves",
		Example:     "  sextant token list",
		Annotations: seeAlso("sextant token remove"),
		RunE: func(*cobra.Command, []string) error {
			tokens, err := access.ReadTokens(*file)
			if err != nil {
				return err
			}
			return a.show(tokensView(tokens, time.Now()))
		},
	}
}

func tokensView(tokens []access.Token, now time.Time) view {
	items := lists.Map(tokens, func(t access.Token) tokenItem {
		item := tokenItem{Label: t.Label, Role: t.Role, Expired: t.Expired(now)}
		if !t.Expires.IsZero() {
			item.Expires = &t.Expires
		}
		return item
	})
	t := table{columns: []string{"LABEL", "ROLE", "EXPIRES", "STATE"}}
	return listView(items, t, func(item tokenItem) (string, []any) {
		expires, state := "never", "valid"
		if item.Expires != nil {
			expires = timeText(*item.Expires)
		}
		if item.Expired {
			state = "expired"
		}
		return item.Label, []any{item.Label, item.Role, expires, state}
	})
}

func (a *app) tokenRemove(file *string) *cobra.Command {
	return &cobra.Command{
		Use: "remove LABEL...", Short: "Remove tokens: what their holders do ends at once",
		Example:     "  sextant token remove ada@laptop",
		Annotations: seeAlso("sextant token list"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("missing LABEL")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string,
			cobra.ShellCompDirective) {
			tokens, _ := access.ReadTokens(*file) // without them, there is nothing to offer
			return tokensView(tokens, time.Now()).names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return access.EditTokens(*file, func(all []access.Token) ([]access.Token, error) {
				var missing []error
				for _, label := range args {
					n := len(all)
					if all = slices.DeleteFunc(all, labelled(label)); len(all) == n {
						missing = append(missing, &api.Error{Code: api.NotFound,
							Message: fmt.Sprintf("%s has no token with the label %q; sextant "+
								"token list shows them", *file, label)})
					}
				}
				return all, errors.Join(missing...)
			})
		},
	}
}
