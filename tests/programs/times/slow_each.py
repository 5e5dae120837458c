"""Two functions of which each 100th call is slow."""


def load(count):
    return sum(i * i for i in range(count))


def handle(number):
    found = number % 2 and number + 1
    if number % 100 == 99:
        found += load(200)
    return found


def handle_all(count):
    return sum(handle(number) for number in range(count))


print(handle_all(500))
