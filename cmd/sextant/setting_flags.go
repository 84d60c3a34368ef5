package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"sextant/config"
)

// settingFlags makes a flag for each field of a PUT body that has the tag setting.
func settingFlags(cmd *cobra.Command, body reflect.Type) {
	eachSetting(body, func(s config.Setting, f reflect.StructField) {
		name := flagName(s)
		if f.Type.Elem().Kind() == reflect.Int && s.Number {
			initial, _ := strconv.Atoi(s.Default)
			cmd.Flags().Int(name, initial, s.Help)
		} else {
			cmd.Flags().String(name, s.Default, s.Help)
		}
		if len(s.Words) > 0 {
			complete(cmd, name, s.Words...)
		}
	})
}

// readSettingFlags fills the fields of a PUT body whose flags were given. The error is that of the
// first flag that can't be read.
func readSettingFlags(cmd *cobra.Command, body any) (wrong error) {
	into := reflect.ValueOf(body).Elem()
	eachSetting(into.Type(), func(s config.Setting, f reflect.StructField) {
		flag := cmd.Flags().Lookup(flagName(s))
		if !flag.Changed || wrong != nil {
			return
		}
		field := reflect.New(f.Type.Elem())
		if wrong = readFlag(s, flag.Value.String(), field.Elem()); wrong != nil {
			wrong = usageErrorf("--%s: %w", flag.Name, wrong)
			return
		}
		into.FieldByIndex(f.Index).Set(field)
	})
	return wrong
}

// readFlag reads a flag's value, or, of a list, values between commas.
func readFlag(s config.Setting, text string, into reflect.Value) error {
	if into.Kind() != reflect.Slice {
		value, err := s.Parse(text)
		if err == nil {
			into.Set(asBody(value, into.Type()))
		}
		return err
	}
	for word := range strings.SplitSeq(text, ",") {
		value, err := s.Parse(strings.TrimSpace(word))
		if err != nil {
			return err
		}
		into.Set(reflect.Append(into, asBody(value, into.Type().Elem())))
	}
	return nil
}

// asBody makes seconds of a time, and a fraction of thousandths, where the body has a number with
// a point.
func asBody(value any, in reflect.Type) reflect.Value {
	switch v := value.(type) {
	case time.Duration:
		return reflect.ValueOf(v.Seconds())
	case int:
		if in.Kind() == reflect.Float64 {
			return reflect.ValueOf(float64(v) / 1000)
		}
	}
	return reflect.ValueOf(value).Convert(in)
}

func eachSetting(body reflect.Type, visit func(config.Setting, reflect.StructField)) {
	all := config.Settings()
	for _, f := range reflect.VisibleFields(body) {
		path := f.Tag.Get("setting")
		i := slices.IndexFunc(all, func(s config.Setting) bool { return s.Path == path })
		if path != "" {
			visit(all[i], f) // any test would find a path that is none
		}
	}
}

// flagName is the last key of a setting's path in the style of flags: drain-time.
func flagName(s config.Setting) string {
	var name strings.Builder
	for _, r := range strings.TrimSuffix(s.Path[strings.LastIndexByte(s.Path, '.')+1:], "[]") {
		if unicode.IsUpper(r) {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}
