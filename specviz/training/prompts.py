"""Prompts as data: the held-out ones that a drafter is judged on, and the patterns that a corpus is sampled from."""

from __future__ import annotations

HELD_OUT: dict[str, tuple[str, ...]] = {
    "chat": (
        "My neighbour practises the drums every evening. How do I raise it without a quarrel?",
        "I have a job interview on Thursday and I am nervous. What should I do the day before?",
        "Why do cats knock things off tables?",
        "Is it worth learning to drive if I live in a big city?",
        "What would you cook for six friends on a rainy Sunday?",
        "I keep forgetting names at parties. Any advice?",
        "Explain to my grandmother what a cloud server is.",
        "What is the difference between being alone and being lonely?",
    ),
    "code": (
        "Write a Python function that returns the longest word in a sentence.",
        "Write a JavaScript function that reverses the digits of an integer.",
        "Show me how to read a CSV file line by line in Python and sum the second column.",
        "Write a SQL query that finds customers who never placed an order.",
        "Write a small Python class for a bank account with deposit and withdraw.",
        "Write a C function that counts the vowels in a string.",
        "Write a Python generator for the Collatz sequence of a number.",
        "Write an HTML page with a form that asks for a name and an e-mail address.",
    ),
    "list": (
        "List ten things to pack for a weekend in the mountains.",
        "Give me seven names for a bakery next to a railway station.",
        "List the steps of changing a bicycle tyre.",
        "Name eight animals that sleep through the winter.",
        "List five arguments for and five against homework.",
        "Give me a shopping list for a vegetarian barbecue.",
        "List twelve verbs that describe how people walk.",
        "List the planets of the solar system with one fact for each.",
    ),
    "translation": (
        "Translate into French: The library closes at eight, but the reading room stays open.",
        "Translate into Spanish: My sister has lost her keys again.",
        "Translate into German: We would like a table by the window, please.",
        "Translate into Italian: The train to the coast leaves every half hour.",
        "Translate into Portuguese: Could you tell me where the museum is?",
        "How do you say 'I am looking for a chemist' in French, Spanish and German?",
        "Translate into French and explain each word: It has been raining since Monday.",
        "Translate this letter into Spanish: Dear Ana, thank you for the book. I read it in two days. Love, Tom.",
    ),
    "repetition": (
        "Repeat the sentence 'the quick otter swims under the old bridge' ten times.",
        "Copy this text exactly: One lamp was red, one lamp was blue, and one lamp would not light at all.",
        "Write the numbers from 1 to 40, each on a line of its own.",
        "Say 'ready, steady, go' eight times, each time on a new line.",
        "Write the alphabet three times, once in capitals, once in small letters and once in capitals again.",
        "Write a poem in which every line begins with 'Tomorrow I will'.",
        "Repeat after me, then repeat it again: peas, beans, lentils, rice, barley, oats.",
        "Write the multiplication table of seven from 1 to 12.",
    ),
}
"""Forty prompts of five kinds. No pattern and no topic below occurs in them word for word."""
