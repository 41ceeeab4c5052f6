"""Episodes in the form that DoctorAgent-RL's evaluation programs read."""

from __future__ import annotations

from consultation_agent.doctoragent_format import doctoragent

RECORD = {
    "id": "case-3",
    "question": "头痛三天",
    "task_type": "神经内科",
    "turns": 2,
    "gold": {"diagnosis": "偏头痛", "recommendation": "休息"},
    "dialogue": [
        {"role": "doctor", "content": "一侧痛吗？", "tokens": 9, "kind": "informative"},
        {"role": "patient", "content": "左边"},
        {
            "role": "doctor",
            "content": "...",
            "tokens": 20,
            "diagnosis": "偏头痛 {x}",
            "recommendation": "休息",
        },
    ],
}


def test_an_episode_has_the_fields_of_the_reference_and_no_other():
    (item,) = doctoragent([RECORD])
    assert item == {
        "id": "case-3",
        "self_report": "头痛三天",
        "true_diagnosis": "偏头痛",
        "true_recommendation": "休息",
        "simulation_dialogue": [
            {"role": "doctor", "content": "一侧痛吗？", "tokens": 9, "is_diagnosis": False},
            {"role": "patient", "content": "左边", "tokens": 0, "is_diagnosis": False},
            {
                "role": "doctor",
                "content": "Diagnosis: 偏头痛 {x}\nRecommendation: 休息",
                "tokens": 20,
                "is_diagnosis": True,
            },
        ],
        "total_turns": 2,
        "category": "神经内科",
    }


def test_what_told_nothing_new_is_a_refusal_of_the_reference():
    said = {
        "repeated": "As I said, on Monday.",
        "unknown": "I am not sure about that.",
        "off_topic": "I do not understand.",
    }
    told = [{"role": "patient", "content": text, "kind": kind} for kind, text in said.items()]
    told.append({"role": "patient", "content": "On Monday.", "kind": "informative"})
    (item,) = doctoragent([RECORD | {"dialogue": told}])
    assert [turn["content"] for turn in item["simulation_dialogue"]] == [
        "Sorry, you've asked this question before.",
        "Sorry, I cannot answer your question.",
        "Sorry, I cannot answer your question.",
        "On Monday.",
    ]
