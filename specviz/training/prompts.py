"""Prompts as data: the held-out ones that a drafter is judged on, and the patterns that a corpus is sampled from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

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

TOPICS = (
    "a lighthouse", "bread", "volcanoes", "a lost dog", "the moon", "chess", "coffee", "a train journey", "rivers",
    "an old clock", "bees", "photography", "a garden in winter", "football", "the ocean", "a blacksmith", "recycling",
    "a piano", "dinosaurs", "sleep", "a market in the morning", "bicycles", "the desert", "an inventor", "soup", "maps",
    "thunderstorms", "a school play", "robots", "honey", "the first snow", "a bridge", "languages", "owls", "a bakery",
    "the stock market", "a broken window", "camping", "an island", "mathematics", "a letter that arrived late", "salt",
    "friendship", "the night sky", "a carpenter", "public libraries", "whales", "a wedding", "electric cars", "trees",
    "a detective", "tea", "earthquakes", "a birthday", "satellites", "a farm", "the human heart", "painting", "bridges",
    "a fisherman", "vaccines", "a secret door", "running", "glass", "a king without a crown", "wolves", "gravity",
    "a village festival", "computers", "potatoes", "an orchestra", "mountains", "a stray cat", "time zones", "paper",
    "a pirate", "the immune system", "cheese", "a museum", "batteries", "a hot summer day", "ants", "democracy",
    "a tailor", "the internet", "horses", "a flood", "chocolate", "an astronaut", "noise", "a grandmother's kitchen",
    "shoes", "probability", "a ferry", "mushrooms", "the colour blue", "a shy dragon", "money", "fire", "a taxi driver",
)  # fmt: skip
"""What the corpus is about."""

PATTERNS = (
    "Tell me a story about {}.",
    "Write a short story about {} with a happy end.",
    "Explain {} to a child.",
    "Explain in one paragraph why people care about {}.",
    "What are three interesting facts about {}?",
    "Write a poem about {}.",
    "What questions would you ask an expert on {}?",
    "Give advice to somebody who is curious about {}.",
    "Describe {} without using its name.",
    "What is the history of {}?",
    "Write a dialogue between two friends about {}.",
    "Write a polite e-mail that mentions {}.",
    "Summarise what most people know about {} in two sentences.",
    "What could go wrong with {}?",
    "Is {} good or bad? Argue both sides.",
    "Write the first page of a novel about {}.",
    "Write a news report about {}.",
    "Write a Python function that has something to do with {}.",
    "Write a Python class that models {}.",
    "Write a JavaScript function with a comment about {}.",
    "Write a Python program that prints a fact about {}.",
    "Write a JSON object that describes {}.",
    "Write an HTML page about {}.",
    "Write a SQL table for {} and one query.",
    "Write a unit test for a program about {}.",
    "List six things that belong to {}.",
    "List the steps to learn more about {}.",
    "Give me five titles for a book about {}.",
    "Make a table of words about {} and their meanings.",
    "Name four people who would know a lot about {}.",
    "Write a packing list for a day with {}.",
    "List the pros and cons of {}.",
    "Give me a plan for a lesson about {} with numbered steps.",
    "Translate into French: I have been thinking about {} all day.",
    "Translate into Spanish: Nobody talks about {} any more.",
    "Translate into German: She wrote a long letter about {}.",
    "Translate into Italian: There is nothing better than {}.",
    "How do you say '{}' in French, Spanish and German?",
    "Repeat the words '{}' six times, each on a new line.",
    "Copy this sentence twice: The story of {} begins again and again.",
    "Count from 1 to 15 and mention {} at the end.",
    "Write four lines that all end with '{}'.",
    "Write a refrain about {} and repeat it three times.",
)
"""What is asked about a topic: talk, code, lists, translation, repetition."""

BEGINNINGS = (
    "Everything I know about {} ",
    "# Notes on {}\n\n1.",
    "It was late when they began to speak of {}, and",
    "Q: What is the matter with {}?\nA:",
)
"""Plain beginnings, without the chat template."""

TEMPERATURES = (1.0, 1.0, 1.0, 0.8, 0.7, 0.7, 0.5, 0.4)
"""A prompt's sampling temperature is drawn from these: most text at 1, some calmer."""


@dataclass(frozen=True, slots=True)
class CorpusPrompt:
    """A text to answer (``chat``) or to go on from, and the temperature to do it at."""

    text: str
    chat: bool
    temperature: float


def corpus_prompts(seed: int) -> Iterator[CorpusPrompt]:
    """Endless prompts in a seeded order: patterns and topics meet at random, one in ten is a plain beginning."""
    random = np.random.default_rng(seed)
    while True:
        chat = random.random() >= 0.1
        pattern = random.choice(PATTERNS if chat else BEGINNINGS)
        yield CorpusPrompt(str(pattern).format(random.choice(TOPICS)), chat, float(random.choice(TEMPERATURES)))
