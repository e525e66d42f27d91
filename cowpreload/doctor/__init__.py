"""What `cowpreload doctor` looks at: machine, interpreter, hosts, an application.

`machine`, `interpreter` and `servers` read a frozen record each, once; `checks` are
pure functions from a record to a fact. `subject` is a program: it loads an application
and measures its workers, in processes of its own that `attend` starts and ends.
`findings` makes facts and advice of what it saw.
"""
