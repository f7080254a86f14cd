from readings import load, mean

print("mean:", mean(load("readings.txt")))
assert mean([2, 4]) == 3, "mean([2, 4]) should be 3"
