package places

const scratch = "/tmp/x" // tests may

const host = "pypi.org"
