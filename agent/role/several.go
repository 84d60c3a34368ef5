package role

import (
	"context"
	"log/slog"
	"strings"

	"sextant/packet/lists"
)

// severalLines is of how many parts of a change each is logged. Of more the log has a summary, and
// each at level debug.
const severalLines = 10

// firstNames is how many names are in a summary.
const firstNames = 3

// LogSeveral logs the parts of a change, each with the attributes that of returns. The summary has
// the attributes that all returns, and the first names.
func LogSeveral[T any](log *slog.Logger, message string, parts []T, of func(T) []any,
	name func(T) string, all func() []any) {
	ctx, level := context.Background(), slog.LevelInfo
	if len(parts) > severalLines {
		first := strings.Join(lists.Map(parts[:firstNames], name), ", ")
		log.Info(message+", together", append(all(), "first", first)...)
		level = slog.LevelDebug
	}
	if !log.Enabled(ctx, level) {
		return
	}
	for _, part := range parts {
		log.Log(ctx, level, message, of(part)...)
	}
}
