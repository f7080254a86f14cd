"""Cards of calls and runs: live while work goes on, plain output afterwards, and the JSON that both are drawn from."""
