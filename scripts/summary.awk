# Reads `go test -v` and prints what `go test` would: one line for a package that passed, everything (but the noise of
# -v, and what its tests that passed wrote) for one that failed. Then what was skipped, with the reason, the tests that took longest, the time that
# test.sh tells, and the number of tests.

function test_name(line) {
	sub(/^ *--- [A-Z]+: /, "", line)
	sub(/ \([0-9.]+s\)$/, "", line)
	return line
}

# Keeps the tests of 10 s and more, the longest first.
function note_time(line, seconds, i) {
	seconds = line
	sub(/.*\(/, "", seconds)
	if (seconds + 0 < 10)
		return
	for (i = ++slow_count; i > 1 && slow_seconds[i - 1] < seconds + 0; i--) {
		slow_seconds[i] = slow_seconds[i - 1]
		slow[i] = slow[i - 1]
	}
	slow_seconds[i] = seconds + 0
	slow[i] = test_name(line)
}

function close_package(name, i) {
	for (i = 1; i <= skips_here; i++)
		skips[++skip_count] = name " " here[i]
	skips_here = 0
	held = 0
	failures_here = 0
	split("", reason)
	split("", fine)
	fflush()
}

/^=== (RUN|PAUSE|CONT|NAME) / {
	current = $3
	next
}

/^ *--- PASS: / {
	if ($0 ~ /^---/) {
		passed++
		note_time($0)
		fine[test_name($0)] = 1
	}
	next
}

/^ *--- SKIP: / {
	if ($0 ~ /^---/)
		skipped++
	name = test_name($0)
	here[++skips_here] = name (name in reason ? ": " reason[name] : "")
	next
}

/^--- FAIL: / {
	failed++
	note_time($0)
	failures_here++
}

/^\?   \t/ {
	next
}

/^took [0-9]+ min / {
	took = $0
	next
}

/^ok  \t/ {
	print
	close_package($2)
	next
}

/^FAIL\t/ {
	for (i = 1; i <= held; i++)
		if (!(owner[i] in fine))
			print lines[i]
	print
	if (failures_here == 0)
		failed++ # it did not build, ran out of time, or crashed
	close_package($2)
	next
}

{
	if ($0 ~ /^ +[a-z0-9_]+_test\.go:[0-9]+: /)
		reason[current] = substr($0, index($0, ": ") + 2)
	lines[++held] = $0
	owner[held] = $0 ~ /^ / ? current : ""
	sub(/\/.*/, "", owner[held]) # the test of a subtest
}

END {
	for (i = 1; i <= skip_count; i++)
		print "skipped: " skips[i]
	for (i = 1; i <= slow_count && i <= 12; i++)
		printf "%s %s %.0f s", i == 1 ? "longest:" : ",", slow[i], slow_seconds[i]
	if (slow_count)
		print ""
	print took
	if (ENVIRON["RUN"] != "" && passed + failed + skipped == 0) {
		print "no test matches RUN=" ENVIRON["RUN"]
		exit 1
	}
	printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
	exit failed > 0
}
